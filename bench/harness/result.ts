/** The result of a run of the benchmarks: every round as it was measured, and the machine. summary.ts computes the rest from it. */
import { Ajv } from "ajv";
import type { Metric, MissingContestant, Size } from "./benchmark.js";
import type { Machine } from "./machine.js";
import type { ContestantRounds } from "./rounds.js";

export const RESULT_FORMAT = "inspection-bench";
/** Raise it when a reader of the former shape would go wrong, but not for added fields. */
export const RESULT_VERSION = 2;

/** What a benchmark's process has measured. */
export interface Measured {
  notes: string[];
  missing: MissingContestant[];
  contestants: ContestantRounds[];
}

export interface BenchmarkResult extends Measured {
  name: string;
  metric: Metric;
  seconds: number;
  /** Why it did not run; there are no contestants then. Null when it ran. */
  error: string | null;
}

/** A run, which is also the shape of the saved file. */
export interface BenchRun {
  format: typeof RESULT_FORMAT;
  version: typeof RESULT_VERSION;
  startedAt: string;
  seconds: number;
  size: Size;
  machine: Machine;
  benchmarks: BenchmarkResult[];
}

const NUMBER = { type: "number" };
const STRING = { type: "string" };

function record(properties: Record<string, object>, optional: Record<string, object> = {}): object {
  return { type: "object", required: Object.keys(properties), properties: { ...properties, ...optional } };
}

function list(items: object): object {
  return { type: "array", items };
}

/** What every round of a saved run must have. The rest of a round is for people who read it. */
const SAMPLES = list(record({ value: { type: "number", exclusiveMinimum: 0 }, seconds: NUMBER }));

const RUN_SCHEMA = record({
  format: { const: RESULT_FORMAT },
  version: { const: RESULT_VERSION },
  startedAt: STRING,
  seconds: NUMBER,
  size: { enum: ["smoke", "full"] },
  machine: record({
    cpuModel: STRING,
    cpuCount: { type: "integer" },
    memoryBytes: NUMBER,
    kernel: STRING,
    nodeVersion: STRING,
    fileSystem: STRING,
  }),
  benchmarks: list(
    record({
      name: STRING,
      metric: record({ name: STRING, unit: STRING, better: { enum: ["higher", "lower"] } }),
      seconds: NUMBER,
      notes: list(STRING),
      missing: list(record({ name: STRING, why: STRING })),
      error: { type: ["string", "null"] },
      contestants: list(record({ name: STRING, warmup: SAMPLES, rounds: SAMPLES }, { disturbed: SAMPLES })),
    }),
  ),
});

const validate = new Ajv({ allowUnionTypes: true }).compile(RUN_SCHEMA);

/** Reads a saved run; throws an error that names the file and the field that is wrong. */
export function parseRun(text: string, source: string): BenchRun {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`${source} is not JSON: ${(error as Error).message}`);
  }
  if (!validate(value)) {
    const first = validate.errors?.[0];
    throw new Error(
      `${source} is no saved run of version ${RESULT_VERSION}: ${first?.instancePath || "/"} ${first?.message}`,
    );
  }
  return value as BenchRun;
}
