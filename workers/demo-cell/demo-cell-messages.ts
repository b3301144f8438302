import type { ReportStatus } from "../../core/run/quality.js";

/** The options of the demo cell's process (JSON in its first argument), and the messages between it and its parent. */
export interface DemoCellOptions {
  /** The service's cell socket. */
  socketPath: string;
  /** The same seed gives the same sequence of content. */
  seed: number;
  /** The cell ends after this many runs; 0: it goes on until it is stopped. */
  runs: number;
  /** Number of the first run; default 1. It decides the run's scene and random content. */
  firstNumber?: number;
  /** The store belongs to somebody else: the cell's serial number, display units and components there stay as they are. */
  isGuest?: boolean;
  /** Replays the height maps of this folder instead of made ones. */
  capturesDirectory?: string;
  /** How many times as fast as a real cell; 0: it does not wait at all. Default 1. */
  speed?: number;
}

/** A report to the parent over IPC. Without an IPC channel it is a line of JSON on stdout. */
export type DemoCellReport =
  | { kind: "connected" }
  | { kind: "disconnected"; reason: string }
  | { kind: "refused"; code: string; message: string }
  | {
      kind: "run_ended";
      /** The run's number. It counts from 1, or from `firstNumber`. */
      number: number;
      runId: string;
      programName: string;
      serialNumber: string;
      /** The last status that the cell reported. Finished runs become completed when the service has finalized them. */
      ending: "finished" | "failed" | "cancelled";
      /** Result of the inspection; null for a run that was not finished. */
      outcome: ReportStatus | null;
      /** How many of the reported defects have a place. */
      placedDefects: number;
    }
  /** All runs are done and acknowledged, or a stop was asked for. The process ends with 0. */
  | { kind: "ended"; runs: number }
  /** The cell cannot go on. The process ends with 1. */
  | { kind: "failed"; code: string; message: string };
