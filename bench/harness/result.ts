/**
 * What a run of the benchmarks leaves behind: every round as it was measured, and beside it what was computed from them. This
 * is the JSON file's shape too; README.md explains its fields, RESULT_SCHEMA is checked when a file is read.
 */
import { Ajv } from "ajv";
import type { Contestant, Goal, Metric, MissingContestant, Size } from "./benchmark.js";
import type { LatencySummary } from "./latency-histogram.js";
import type { Machine } from "./machine.js";
import type { ContestantRounds } from "./rounds.js";
import type { Interval, Spread } from "./statistics.js";

export const RESULT_FORMAT = "inspection-bench";
/** Raised when a reader of the former shape would go wrong; added fields do not raise it. */
export const RESULT_VERSION = 1;

export interface ContestantResult extends Contestant, ContestantRounds {
  spread: Spread;
  /** Over all measured rounds together; absent where the benchmark times no single operations. */
  latency?: LatencySummary;
  /** Medians over the measured rounds. */
  details: Record<string, number>;
  /** Distinct warnings with the number of rounds that gave them. */
  warnings: { text: string; rounds: number }[];
}

export interface GoalResult {
  goal: Goal;
  /** Per round: contestant / peer, or the contestant's value. */
  values: number[];
  spread: Spread;
  /** Of the median. */
  interval: Interval;
  met: boolean;
  /** False when the interval lies on both sides of the goal: more rounds may turn the verdict. */
  clear: boolean;
  /** How far the median is beyond (positive) or short of (negative) the goal, as a share of the goal. */
  margin: number;
}

/** Round by round ratio of two contestants. */
export interface PairResult {
  contestant: string;
  peer: string;
  ratios: number[];
  spread: Spread;
  interval: Interval;
}

export interface BenchmarkResult {
  name: string;
  measures: string;
  metric: Metric;
  startedAt: string;
  seconds: number;
  notes: string[];
  /** Null when it ran; else why it did not, and there are no contestants then. */
  error: string | null;
  contestants: ContestantResult[];
  /** Contestants that could not take part. Absent when all did. */
  missing?: MissingContestant[];
  /** Every contestant against the benchmark's peer, where it has one. */
  pairs: PairResult[];
  goals: GoalResult[];
  /** Goals of which a contestant is missing. Absent when there are none. */
  unjudged?: Goal[];
}

export interface BenchReport {
  format: typeof RESULT_FORMAT;
  version: typeof RESULT_VERSION;
  startedAt: string;
  seconds: number;
  size: Size;
  seed: number;
  machine: Machine;
  benchmarks: BenchmarkResult[];
}

/** What a benchmark's process sends when it is through. */
export interface MeasuredBenchmark {
  name: string;
  startedAt: string;
  seconds: number;
  notes: string[];
  missing: MissingContestant[];
  contestants: ContestantRounds[];
}

const NUMBER = { type: "number" };
const STRING = { type: "string" };
const NUMBERS = { type: "array", items: NUMBER };

function record(properties: Record<string, object>, optional: Record<string, object> = {}): object {
  return { type: "object", required: Object.keys(properties), properties: { ...properties, ...optional } };
}

const SPREAD = record({
  count: { type: "integer" },
  median: NUMBER,
  lowerQuartile: NUMBER,
  upperQuartile: NUMBER,
  mad: NUMBER,
  minimum: NUMBER,
  maximum: NUMBER,
});
const INTERVAL = record({ low: NUMBER, high: NUMBER, confidence: NUMBER });
const LATENCY_DATA = record({
  count: NUMBER,
  maximumNs: NUMBER,
  buckets: { type: "array", items: { type: "array", items: NUMBER, minItems: 2, maxItems: 2 } },
});
const LATENCY_SUMMARY = record({
  count: NUMBER,
  p50Us: NUMBER,
  p90Us: NUMBER,
  p99Us: NUMBER,
  p999Us: NUMBER,
  maximumUs: NUMBER,
});
const SAMPLE = record(
  { value: NUMBER, seconds: NUMBER },
  {
    stolenShare: NUMBER,
    latency: LATENCY_DATA,
    details: { type: "object", additionalProperties: NUMBER },
    warnings: { type: "array", items: STRING },
  },
);

/** JSON Schema of the result file. */
export const RESULT_SCHEMA = record({
  format: { const: RESULT_FORMAT },
  version: { const: RESULT_VERSION },
  startedAt: STRING,
  seconds: NUMBER,
  size: { enum: ["smoke", "full"] },
  seed: { type: "integer" },
  machine: record({
    cpuModel: STRING,
    cpuCount: { type: "integer" },
    memoryBytes: NUMBER,
    kernel: STRING,
    nodeVersion: STRING,
    loadAverage: NUMBERS,
    directory: STRING,
    fileSystem: STRING,
    fdatasync: record({
      medianUs: NUMBER,
      minimumUs: NUMBER,
      maximumUs: NUMBER,
      verdict: STRING,
      plausible: { type: "boolean" },
    }),
    gitRevision: { type: ["string", "null"] },
    gitDirty: { type: ["boolean", "null"] },
  }),
  benchmarks: {
    type: "array",
    items: record({
      name: STRING,
      measures: STRING,
      metric: record({ name: STRING, unit: STRING, better: { enum: ["higher", "lower"] } }),
      startedAt: STRING,
      seconds: NUMBER,
      notes: { type: "array", items: STRING },
      error: { type: ["string", "null"] },
      contestants: {
        type: "array",
        items: record(
          {
            name: STRING,
            description: STRING,
            warmup: { type: "array", items: SAMPLE },
            rounds: { type: "array", items: SAMPLE, minItems: 1 },
            spread: SPREAD,
            details: { type: "object", additionalProperties: NUMBER },
            warnings: { type: "array", items: record({ text: STRING, rounds: { type: "integer" } }) },
          },
          { latency: LATENCY_SUMMARY, disturbed: { type: "array", items: SAMPLE } },
        ),
      },
      pairs: {
        type: "array",
        items: record({ contestant: STRING, peer: STRING, ratios: NUMBERS, spread: SPREAD, interval: INTERVAL }),
      },
      goals: {
        type: "array",
        items: record({
          goal: record({ kind: { enum: ["ratio", "value"] }, contestant: STRING, direction: STRING, source: STRING }),
          values: NUMBERS,
          spread: SPREAD,
          interval: INTERVAL,
          met: { type: "boolean" },
          clear: { type: "boolean" },
          margin: NUMBER,
        }),
      },
    }),
  },
});

const validate = new Ajv({ allowUnionTypes: true }).compile(RESULT_SCHEMA);

/** Reads a saved report; throws an error that names the file and the field that is wrong. */
export function parseReport(text: string, source: string): BenchReport {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`${source} is not JSON: ${(error as Error).message}`);
  }
  if (!validate(value)) {
    const first = validate.errors?.[0];
    throw new Error(
      `${source} is no ${RESULT_FORMAT} result of version ${RESULT_VERSION}: ${first?.instancePath || "/"} ${first?.message}`,
    );
  }
  return value as BenchReport;
}
