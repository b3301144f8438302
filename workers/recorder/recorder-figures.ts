import { countDuration, createDurationCounts, type DurationCounts } from "../../core/duration-counts.js";
import type { LoopDelay } from "../loop-delay.js";
import type { DeliveryFigures } from "../webhooks/deliveries/delivery-figures.js";
import type { StoreCounters } from "./upkeep/store-counters.js";

/** What the recorder counts since it started, for the service's metrics. Plain data: it crosses threads. */
export interface RecorderFigures {
  messages: number;
  /** MessagePack bodies and payloads of these messages. */
  messageBytes: number;
  /** From taking a message to its commit. */
  commits: DurationCounts;
  connections: number;
  /** Appended to the log and not committed; handed to capture files and not written; sent to the front and not taken in. */
  logPendingBytes: number;
  capturesPendingBytes: number;
  frontPendingBytes: number;
  /** Records that the log holds or has held. */
  records: number;
  activeRuns: number;
  /** Artefacts of captures that are to be made, or being made. */
  openArtefacts: number;
  /** Of all runs' capture files: of those at the start what records name, what was appended since, less what retention freed. */
  capturedBytes: number;
  /** Taken for capture files since the start: captures, reports' files, and what is made of captures and kept. */
  captureAppendedBytes: number;
  /** Null where nobody watches it. */
  loopDelay: LoopDelay | null;
  /** Null before the store is open. */
  store: StoreCounters | null;
  /** Null before the log is open. */
  deliveries: DeliveryFigures | null;
}

/** Counts messages as they pass. */
export class MessageFigures {
  messages = 0;
  messageBytes = 0;
  readonly commits = createDurationCounts();

  /** @returns when, by `performance.now`: what `committed` wants to know */
  taken(bytes: number): number {
    this.messages++;
    this.messageBytes += bytes;
    return performance.now();
  }

  /** A message that was taken at `takenMs` is committed at `nowMs`. */
  committed(takenMs: number, nowMs: number): void {
    countDuration(this.commits, (nowMs - takenMs) / 1000);
  }
}
