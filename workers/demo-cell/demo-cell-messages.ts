import type { ReportStatus } from "../../core/run/quality.js";

/** The options of the demo cell's process (JSON in its first argument), and the messages between it and its parent. */
export interface DemoCellOptions {
  /** The service's cell socket. */
  socketPath: string;
  /** Same seed, same sequence of content. */
  seed: number;
  /** Ends after so many runs; 0 goes on until it is stopped. */
  runs: number;
  /** Number of the first run; default 1. It decides the run's scene and random content. */
  firstNumber?: number;
  /** The store is somebody else's: the cell leaves its serial number, its display units and its components as they are. */
  isGuest?: boolean;
  /** Replays the height maps of this folder in place of made ones. */
  capturesDirectory?: string;
  /** How many times as fast as a real cell; 0 does not wait at all. Default 1. */
  speed?: number;
  /** Name on the link. Default demo-cell. */
  producer?: string;
}

/** To the parent over IPC; a line of JSON on stdout without one. */
export type DemoCellReport =
  | { kind: "connected" }
  | { kind: "disconnected"; reason: string }
  | { kind: "refused"; code: string; message: string }
  | {
      kind: "run_ended";
      /** Counts from 1, or from `firstNumber`. */
      number: number;
      runId: string;
      programName: string;
      serialNumber: string;
      /** What the cell said last: finished runs become completed when the service has finalized them. */
      ending: "finished" | "failed" | "cancelled";
      /** Result of the inspection; null for a run that was not finished. */
      outcome: ReportStatus | null;
      /** How many defects were reported that have a place. */
      placedDefects: number;
    }
  /** All runs are done and acknowledged, or a stop was asked for; the process ends with 0. */
  | { kind: "ended"; runs: number }
  /** The cell cannot go on; the process ends with 1. */
  | { kind: "failed"; code: string; message: string };
