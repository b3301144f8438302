import type { LatencyData } from "./latency-histogram.js";

/** `smoke` proves in a moment that a benchmark still runs; its figures mean nothing. `full` is for figures. */
export type Size = "smoke" | "full";

export interface Metric {
  name: string;
  unit: string;
  better: "higher" | "lower";
}

/** What a contestant is meant to reach. The report judges it; the exit code does not depend on it. */
export interface Goal {
  contestant: string;
  /** The contestant that it is divided by, round by round. Without one, the figure itself is judged. */
  peer?: string;
  direction: "at-least" | "at-most";
  /** A ratio with a peer, else in the metric's unit. */
  target: number;
  /** Where the goal comes from. */
  source: string;
}

/** The result of one round of one contestant. */
export interface RoundSample {
  /** The figure, in the metric's unit. */
  value: number;
  /** How long the measured part took. */
  seconds: number;
  /** Share of all cores' time that the machine's host took: while this was measured, or in the contestant's whole turn if the benchmark does not say. */
  stolenShare?: number;
  latency?: LatencyData;
  /** Further figures, by name with unit last; reported as medians. */
  details?: Record<string, number>;
  /** Reasons why this round may be misleading. */
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
  /** For Unix sockets, whose paths have at most 107 bytes. It is short wherever `directory` is, fresh, and removed too. */
  socketDirectory: string;
  /** The seed of generated data. */
  seed: number;
  /** Shows a line to the person who watches. */
  log(line: string): void;
  /** Adds what must be closed after the rounds, or when opening fails. The last one is closed first. */
  onClose(closer: () => unknown): void;
}

/** A benchmark made ready. `runners` has one entry for every declared contestant that is not `missing`. */
export interface OpenBenchmark {
  runners: Record<string, () => Promise<RoundSample>>;
  /** Contestants that cannot take part here: the others are measured without them, and goals that need them are not judged. */
  missing?: readonly MissingContestant[];
  /** What a reader of the figures must know about this run of the benchmark. */
  notes: readonly string[];
}

export interface Benchmark {
  name: string;
  /** What is measured, from where to where, and what it is compared with; printed with the figures. */
  measures: string;
  metric: Metric;
  contestants: readonly Contestant[];
  /**
   * The contestant that is not the service: another program that does the same on the same machine. All others are divided by it,
   * round by round. Null: there is none.
   */
  peer: string | null;
  goals: readonly Goal[];
  /** The rounds at full size; `--guard` needs at least 6. At smoke size one round is measured. */
  rounds: { warmup: number; measured: number };
  /** Time limit of opening and all rounds together. After it the benchmark's processes are ended, and it counts as failed. */
  timeoutSeconds: number;
  open(context: BenchmarkContext): Promise<OpenBenchmark>;
}
