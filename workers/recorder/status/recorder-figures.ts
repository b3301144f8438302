import { countDuration, createDurationCounts, type DurationCounts } from "../../../core/duration-counts.js";
import type { LoopDelay } from "../../loop-delay.js";
import type { DeliveryFigures } from "../../webhooks/deliveries/delivery-figures.js";

/** What retention has removed since the process started. Captures count once their files are durably unlinked. */
export interface RemovedCounts {
  runs: number;
  files: number;
  bytes: number;
}

/**
 * What the recorder has counted since it started, for the service's metrics. It is plain data, because it crosses
 * threads.
 */
export interface RecorderFigures {
  messages: number;
  /** Bytes of the MessagePack bodies and payloads of these messages. */
  messageBytes: number;
  /** Time from taking a message to its commit. */
  commits: DurationCounts;
  connections: number;
  /** Messages that were appended to the log and are not committed. */
  logPendingBytes: number;
  /** Bytes that were handed to capture files and are not written. */
  capturesPendingBytes: number;
  /** Bytes that were sent to the front and not taken by it. */
  frontPendingBytes: number;
  /** Records that the log holds or has held. */
  records: number;
  activeRuns: number;
  /** Artefacts of captures that are to be made, or being made. */
  openArtefacts: number;
  /** Size of all capture files: what records named at the start, plus what was appended since, minus what retention freed. */
  capturedBytes: number;
  /** Bytes appended to capture files since the start: captures, files of reports, and stored artefacts. */
  captureAppendedBytes: number;
  /** Null if nothing watches the event loop. */
  loopDelay: LoopDelay | null;
  /** Null before the store is open. */
  retention: RemovedCounts | null;
  /** Null before the log is open. */
  deliveries: DeliveryFigures | null;
}

/** Counts messages and how long their commits take. */
export class MessageFigures {
  messages = 0;
  messageBytes = 0;
  readonly commits = createDurationCounts();

  /** @returns the time by `performance.now`, to be given to `committed` */
  taken(bytes: number): number {
    this.messages++;
    this.messageBytes += bytes;
    return performance.now();
  }

  /** Both times by `performance.now`. */
  committed(takenMs: number, nowMs: number): void {
    countDuration(this.commits, (nowMs - takenMs) / 1000);
  }
}
