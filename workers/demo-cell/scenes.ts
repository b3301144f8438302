import type { ReportStatus } from "../../core/run/quality.js";

/** What one run of the demo shows. The seed decides what a scene leaves open. */
export interface Scene {
  /** Which of the programs, from 0; with fewer programs it starts again from the first. */
  program: number;
  /** Result of the inspection. */
  outcome?: ReportStatus;
  /** The part has at least one flaw. */
  isFlawed?: boolean;
  /** The last part of this program comes again: same serial number, next revision. */
  isAgain?: boolean;
  /** How the run ends instead of being finished. */
  ending?: "failed" | "cancelled";
}

/** The first runs, in this order with every seed. After them a cell has shown everything it can do. */
export const SCENES: readonly Scene[] = [
  { program: 0, outcome: "passed", isFlawed: true },
  { program: 1, outcome: "failed" },
  // Reworked, and inspected again.
  { program: 1, outcome: "passed", isAgain: true },
  { program: 2, outcome: "indeterminate" },
  { program: 0, ending: "failed" },
  { program: 1, ending: "cancelled" },
  // The first part of the batch that is shown in inches.
  { program: 0, outcome: "passed", isFlawed: true },
  { program: 3, outcome: "passed" },
];

/** The scene of run 0, which only a new store of the demo has (see `firstNumber`). Retention has removed its captures. */
const OPENING_SCENE: Scene = { program: 1, outcome: "passed" };

/** The scene of a run, counted from 1; undefined after the last scene: the seed then decides everything. */
export function sceneOf(number: number): Scene | undefined {
  return number === 0 ? OPENING_SCENE : SCENES[number - 1];
}

const BATCH_RUNS = 6;

/** Runs come in batches, each for one customer. Every other customer reads inches: the cell's display is set to them meanwhile. */
export interface Batch {
  /** Counts from 1. */
  number: number;
  unitSystem: "metric" | "imperial";
  /** The run is the first of it. */
  isNew: boolean;
}

export function batchOf(number: number): Batch {
  const before = Math.floor((Math.max(1, number) - 1) / BATCH_RUNS);
  return {
    number: before + 1,
    unitSystem: before % 2 === 0 ? "metric" : "imperial",
    isNew: number % BATCH_RUNS === 1,
  };
}
