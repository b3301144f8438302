import type { HttpClient } from "../load/http/http-client.js";
import type { LatencyData } from "./latency-histogram.js";

/** `smoke` proves in a moment that a benchmark still runs; its figures mean nothing. `full` is for figures. */
export type Size = "smoke" | "full";

export interface Metric {
  name: string;
  unit: string;
  better: "higher" | "lower";
}

/** What a contestant is meant to reach; judged in the report, never in the exit code unless asked for. */
export type Goal = {
  contestant: string;
  direction: "at-least" | "at-most";
  /** Where the goal comes from. */
  source: string;
} & (
  | { kind: "ratio" /** The contestant it is divided by, round by round. */; peer: string; ratio: number }
  | { kind: "value" /** In the metric's unit. */; value: number }
);

/** What one round of one contestant gave. */
export interface RoundSample {
  /** In the metric's unit. */
  value: number;
  /** How long the measured part took. */
  seconds: number;
  /** Of the time of all cores, what the machine's host took while this was measured; of the whole turn where the benchmark does not say. */
  stolenShare?: number;
  latency?: LatencyData;
  /** Further figures, by name with unit last; reported as medians. */
  details?: Record<string, number>;
  /** Why this round may not mean what it says. */
  warnings?: string[];
}

export interface Contestant {
  name: string;
  description: string;
}

/** A contestant that cannot take part on this machine. */
export interface MissingContestant {
  name: string;
  why: string;
}

export interface BenchmarkContext {
  size: Size;
  /** A fresh directory on the measured disk, removed afterwards. */
  directory: string;
  /** For stores that several benchmarks share; removed after the last one, or kept for the next run if that was asked for. */
  storesDirectory: string;
  /** For Unix sockets, whose paths hold 107 bytes only: short wherever `directory` is. Also fresh, also removed. */
  socketDirectory: string;
  seed: number;
  httpClient: HttpClient;
  /** Where `--cpu-prof` wants the profiles of processes that the benchmark starts; null without it. */
  profileDirectory: string | null;
  /** A line for whoever watches. */
  log(line: string): void;
}

/** A benchmark made ready. `runners` has one entry for every declared contestant that is not `missing`. */
export interface OpenBenchmark {
  runners: Record<string, () => Promise<RoundSample>>;
  /** Peers that are not installed here: what stands beside them is told without them, and their goals are not judged. */
  missing?: readonly MissingContestant[];
  /** What a reader of the figures must know about this run of it. */
  notes: string[];
  close(): Promise<void>;
}

export interface Benchmark {
  name: string;
  /** What is measured, from where to where, and what it is compared with; printed with the figures. */
  measures: string;
  metric: Metric;
  contestants: readonly Contestant[];
  /** The contestant that all others are divided by, round by round; null where there is nothing to stand beside. */
  peer: string | null;
  goals: readonly Goal[];
  rounds: Record<Size, { warmup: number; measured: number }>;
  /** For the set-up and all rounds together; past it the benchmark's processes are ended and it counts as failed. */
  timeoutSeconds: Record<Size, number>;
  open(context: BenchmarkContext): Promise<OpenBenchmark>;
}
