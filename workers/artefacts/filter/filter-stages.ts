/** The stages of a filter that several threads do together (filter-parts.ts), and as the numbers by which they tell each other of them. */
import type { Grid } from "./grid-layout.js";
import type { FilterPlan } from "./outlier-filter.js";
import type { ThresholdBounds } from "./outlier-threshold.js";

/** Bytes that every member has to itself: the first at `at`, the next `bytes` on. */
export interface Scratches {
  at: number;
  bytes: number;
}

/** `usedBytes`: what is laid out in the memory, which is `memoryBytes` long. */
export interface InMemory {
  usedBytes: number;
  memoryBytes: number;
}

export interface Planned extends InMemory {
  plan: FilterPlan;
  scratches: Scratches;
  /** Addresses of the mask, and of an i32 for every line: the points that it keeps. */
  mask: number;
  lineCounts: number;
  isAgain: boolean;
}

export type LoadStage = { kind: "load"; grid: Grid; scratches: Scratches } & InMemory;
export type MeasureStage = { kind: "measure" } & Planned;
export type MarkStage = { kind: "mark"; bounds: ThresholdBounds; points: number } & Planned;
export type FilterStage = { kind: "layOut" } | LoadStage | MeasureStage | MarkStage;

const KINDS = ["layOut", "load", "measure", "mark"] as const satisfies FilterStage["kind"][];
const WAYS = ["lanes", "near", "exact", "exactLanes", "tree"] as const satisfies FilterPlan["way"][];

/** In the order in which `stageOf` takes them. */
export function numbersOf(stage: FilterStage): readonly number[] {
  const kind = KINDS.indexOf(stage.kind);
  if (stage.kind === "layOut") return [kind];
  const { scratches, usedBytes, memoryBytes } = stage;
  const { address, width, lines, zs, stride, xs, ys, squares, squaresPitch } =
    stage.kind === "load" ? stage.grid : stage.plan.grid;
  const inMemory = [scratches.at, scratches.bytes, usedBytes, memoryBytes];
  const loaded = [kind, address, width, lines, zs, stride, xs, ys, squares, squaresPitch, ...inMemory];
  if (stage.kind === "load") return loaded;
  const { plan, mask, lineCounts, isAgain } = stage;
  const planned = [...loaded, WAYS.indexOf(plan.way), plan.distances, mask, lineCounts, isAgain ? 1 : 0];
  if (stage.kind === "measure") return planned;
  const { bounds, points } = stage;
  return [...planned, bounds.low, bounds.high, bounds.error, points];
}

export function stageOf(numbers: Float64Array): FilterStage {
  let nth = 0;
  const next = (): number => numbers[nth++] as number;
  const kind = KINDS[next()];
  if (kind === undefined) throw new Error(`${numbers[0]} is no stage`);
  if (kind === "layOut") return { kind };
  const grid: Grid = {
    address: next(),
    width: next(),
    lines: next(),
    zs: next(),
    stride: next(),
    xs: next(),
    ys: next(),
    squares: next(),
    squaresPitch: next(),
  };
  const loaded = { scratches: { at: next(), bytes: next() }, usedBytes: next(), memoryBytes: next() };
  if (kind === "load") return { kind, grid, ...loaded };
  const plan: FilterPlan = { grid, way: WAYS[next()] as FilterPlan["way"], distances: next() };
  const planned = { plan, ...loaded, mask: next(), lineCounts: next(), isAgain: next() === 1 };
  if (kind === "measure") return { kind, ...planned };
  return { kind, ...planned, bounds: { low: next(), high: next(), error: next() }, points: next() };
}
