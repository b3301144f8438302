import type { ReportStatus } from "../../core/run/quality.js";

/** What one run of the demo shows. The seed decides everything that a scene leaves open. */
export interface Scene {
  /** Which of the programs it is, from 0. If there are fewer programs, counting starts again from the first. */
  program: number;
  /** Result of the inspection. */
  outcome?: ReportStatus;
  /** The part has at least one flaw. */
  isFlawed?: boolean;
  /** The last part of this program comes again, with the same serial number and the next revision. */
  isAgain?: boolean;
  /** The sensor measures nothing at all of the part. Its inspection then fails. */
  isUnseen?: boolean;
  /** How the run ends if it is not finished. */
  ending?: "failed" | "cancelled";
}

/** The first runs, in this order with every seed. After them a cell has shown nearly everything that it can do. */
export const SCENES: readonly Scene[] = [
  { program: 0, outcome: "passed", isFlawed: true },
  { program: 1, outcome: "failed" },
  // This part was reworked, and is inspected again.
  { program: 1, outcome: "passed", isAgain: true },
  { program: 2, outcome: "indeterminate" },
  { program: 0, ending: "failed" },
  { program: 1, ending: "cancelled" },
  // This is the first part of the batch that is shown in inches.
  { program: 0, outcome: "passed", isFlawed: true },
  { program: 3, outcome: "passed" },
];

/** The runs after them: parts with nothing but heights measured, and a part that takes three inspections. */
export const FURTHER_SCENES: readonly Scene[] = [
  { program: 4, outcome: "passed", isFlawed: true },
  { program: 4, outcome: "failed" },
  // The head's window is covered.
  { program: 4, outcome: "failed", isAgain: true, isUnseen: true },
  { program: 4, outcome: "passed", isAgain: true },
];

/** The scene of run 0, which only a new store of the demo has (see `firstNumber`). Retention has removed its captures. */
const OPENING_SCENE: Scene = { program: 1, outcome: "passed" };

/** The scene of a run, counted from 1. It is undefined after the last scene: then the seed decides everything. */
export function sceneOf(number: number): Scene | undefined {
  return number === 0 ? OPENING_SCENE : [...SCENES, ...FURTHER_SCENES][number - 1];
}

const BATCH_RUNS = 6;

/** The customers, in turn. */
const CUSTOMERS = ["Hartmann Antriebe", "Lakeside Pumps", "Nordwerk E-Mobility", "Caldera Robotics"];

/**
 * Runs come in batches, each for one customer. Every other customer reads inches, and the cell's display is set to
 * inches for that batch.
 */
export interface Batch {
  /** The batch's number, from 1. */
  number: number;
  customer: string;
  /** Number of the customer's order. */
  order: string;
  unitSystem: "metric" | "imperial";
  /** True if the run is the first of its batch. */
  isNew: boolean;
}

export function batchOf(number: number): Batch {
  const before = Math.floor((Math.max(1, number) - 1) / BATCH_RUNS);
  return {
    number: before + 1,
    customer: CUSTOMERS[before % CUSTOMERS.length] as string,
    order: `45${String(10_307 + 17 * before).padStart(6, "0")}`,
    unitSystem: before % 2 === 0 ? "metric" : "imperial",
    isNew: number % BATCH_RUNS === 1,
  };
}
