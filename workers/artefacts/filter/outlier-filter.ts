import { countBits } from "../cloud/line-counts.js";
import type { KernelMemory } from "../kernel-memory.js";
import { NEAR_ERROR } from "../kernels/near-distances.js";
import {
  GRID_WORDS,
  SCRATCH_BYTES,
  TILE_MAXIMA,
  TILE_MINIMA,
  TILES_HIGH,
  TILES_WIDE,
} from "../kernels/neighbour-search.js";
import {
  COUNT,
  COUNTED,
  DECIDED,
  DEVIATION,
  MEAN,
  OPEN,
  SPREAD,
  STATISTICS_WORDS,
} from "../kernels/outlier-statistics.js";
import { STACK_BYTES, TREE_WORDS, treeNodes } from "../kernels/point-tree.js";
import { type Grid, lateralRange } from "./grid-layout.js";
import { boundThreshold, type DistanceSums, sumsAround, type ThresholdBounds, total } from "./outlier-threshold.js";

/**
 * Largest relative error of a distance by the way that it is measured; null: by the exact threshold alone. Of the lanes it is 5 roundings of f32
 * (assembly/distance-lanes.ts), and their products.
 */
const ERRORS = { lanes: 5.01 * 2 ** -24, near: NEAR_ERROR, exactLanes: 0, exact: null, tree: null } as const;
/** With fewer points exact distances cost nothing, and there is more in the threshold that rounding decides. */
const LEAST_POSITIONS = 2_000;
/** The lanes look at so many entries of the offset table, and at the bound of the next. */
const LANE_OFFSETS = 80;
/** Squares of f32 keep their full precision, and do not overflow, within these. */
const LEAST_SQUARED_MM = 1e-30;
const GREATEST_SQUARED_MM = 1e30;
const GREATEST_Z_MM = 1e15;
/**
 * What a search through tiles may cost before the tree takes over, in visits of four tiles (a tile that is looked into counts 16): on a
 * surface a point takes some hundreds at most.
 */
const TILE_WORK = 4_000;
const UNLIMITED_WORK = 0x3fff_ffff;
/** Points that are tried to tell a surface from noise, and the mean cost from which on tiles are no help. */
const TRIED_POINTS = 256;
const NOISE_WORK = 100;
/** In noise a point costs hundreds of comparisons, never this few. */
const FIRST_TRIED = 32;
const GOLDEN_RATIO = (1 + Math.sqrt(5)) / 2;
const CLEAR_WORK = 25;
/** For fewer than these the tree is not worth planting. */
const LEAST_OPEN_FOR_TREE = 64;
/** Distances that the mean is guessed from before they are summed around it: one of so many, between these. Few of a part that is soon measured. */
const SAMPLED_OF = 32;
const LEAST_SAMPLED = 128;
const MOST_SAMPLED = 1_024;
/** The lanes' plan of offsets lies behind the scratch of the search and 48 bytes: 12 bytes each. */
const LANES_SCRATCH_BYTES = SCRATCH_BYTES + 48 + 12 * LANE_OFFSETS;

export interface OutlierMask {
  /** Bit (line x width + column), lowest first: set for a point that stays. */
  bits: Uint8Array<ArrayBuffer>;
  points: number;
  inliers: number;
}

/**
 * How mean distances are computed:
 * - `lanes`: f32, four points at a time, in WebAssembly only
 * - `near`: f64, but for the order of a sum exact
 * - `exact`: to the last bit as Open3D
 * - `exactLanes`: as `exact`, two points at a time, in WebAssembly only
 * - `tree`: as `exact`, but by the tree for every point, where heights are noise
 *
 * The first two have a known error. Where it leaves a point in doubt the point is searched exactly; where that is not enough, because an exact
 * distance is within the threshold's own error, all are: after `lanes` by `exactLanes`, which takes once and a half to three times as long as
 * `lanes`. So the result is that of `exact` always.
 */
type Way = "lanes" | "near" | "exact" | "exactLanes" | "tree";

/** A filter under way in a memory, as data: a thread that shares the memory can measure and mark some lines of it. */
export interface FilterPlan {
  grid: Grid;
  way: Way;
  /** Address of the distances: f32 for lanes, else f64; line x width + column. */
  distances: number;
}

/** Filters a grid in the memory, whose heights are there. */
export function filterOutliers(memory: KernelMemory, grid: Grid): OutlierMask {
  boundTiles(memory, grid, 0, grid.lines);
  const plan = planFilter(memory, grid);
  return finishFilter(memory, plan, [measureWhole(memory, plan)]);
}

/** The first thing to be done with heights: of lines from one that is divisible by 8 as far as another, or the end. */
export function boundTiles(memory: KernelMemory, { address }: Grid, firstLine: number, endLine: number): void {
  for (let line = firstLine; line < endLine; line += 8) memory.kernels.boundTiles(address, line / 8);
}

/** Lays out distances beside the grid: 4 bytes a position where lanes do, else 8. */
export function planFilter(memory: KernelMemory, grid: Grid): FilterPlan {
  const way = wayFor(memory, grid, memory.allocate(SCRATCH_BYTES));
  return { grid, way, distances: memory.allocate(itemBytesOf(way) * grid.width * grid.lines) };
}

/** The next way, where one has left points undecided. */
export function planAgain(memory: KernelMemory, { grid, way, distances }: FilterPlan): FilterPlan {
  const next = way === "lanes" ? "exactLanes" : "exact";
  if (itemBytesOf(way) === 8) return { grid, way: next, distances };
  return { grid, way: next, distances: memory.allocate(8 * grid.width * grid.lines) };
}

/** Bytes of the memory that `markLines` needs to itself. */
export const MARKING_BYTES = SCRATCH_BYTES;

/** Bytes of the memory that `measureLines` needs to itself. */
export function scratchBytes(memory: KernelMemory, { grid, way }: FilterPlan): number {
  if (way === "lanes") return LANES_SCRATCH_BYTES;
  if (way === "exactLanes" && memory.wasm !== null) return memory.wasm.exactLanesScratchBytes(grid.address);
  return way === "near" ? memory.kernels.nearScratchBytes(grid.address) : SCRATCH_BYTES;
}

function wayFor(memory: KernelMemory, grid: Grid, best: number): Way {
  if (grid.width * grid.lines < LEAST_POSITIONS) return "exact";
  if (isNoise(memory, grid, best)) return "tree";
  return suitsLanes(memory, grid) ? "lanes" : "near";
}

/** Measures the mean distances of some lines, and sums them up: parts that share a memory may do so at the same time. */
export function measureLines(
  memory: KernelMemory,
  plan: FilterPlan,
  scratch: number,
  firstLine: number,
  endLine: number,
): DistanceSums {
  const { grid, way, distances } = plan;
  const { address, width, squares, squaresPitch } = grid;
  const { kernels, wasm } = memory;
  if (way === "lanes" && wasm !== null) {
    wasm.measureLanes(address, scratch, distances, squares, squaresPitch, firstLine, endLine, TILE_WORK);
  } else if (way === "exactLanes" && wasm !== null) {
    wasm.measureExactLanes(address, scratch, distances, firstLine, endLine, TILE_WORK);
  } else if (way === "near") {
    kernels.measureNear(address, scratch, distances, firstLine, endLine, TILE_WORK);
  } else if (way === "exact") {
    kernels.measureExactly(address, scratch, distances, firstLine, endLine, TILE_WORK);
  } else {
    // All open: the tree answers in the end.
    memory.doubles(distances + 8 * firstLine * width, (endLine - firstLine) * width).fill(-1);
  }
  const sums = sumLines(memory, plan, scratch, firstLine, endLine);
  if (sums.open === 0 || sums.open * grid.lines >= LEAST_OPEN_FOR_TREE * (endLine - firstLine)) return sums;
  kernels.measureOpen(address, scratch, distances, itemBytesOf(way), firstLine, endLine, UNLIMITED_WORK);
  return sumLines(memory, plan, scratch, firstLine, endLine);
}

/** One pass where a sample has told the mean well enough, else two: the second around the mean that the first has found. */
function sumLines(
  memory: KernelMemory,
  plan: FilterPlan,
  scratch: number,
  firstLine: number,
  endLine: number,
): DistanceSums {
  const { grid, way, distances } = plan;
  const sumUp = (around: number): DistanceSums => {
    memory.kernels.approximateSums(
      ...([grid.address, distances, itemBytesOf(way), firstLine, endLine, around, scratch] as const),
    );
    const words = memory.doubles(scratch, STATISTICS_WORDS);
    const wordOf = (word: number): number => words[word] as number;
    return {
      points: wordOf(COUNT),
      counted: wordOf(COUNTED),
      open: wordOf(OPEN),
      sum: wordOf(MEAN),
      around,
      squares: wordOf(DEVIATION),
      spread: wordOf(SPREAD),
    };
  };
  const sums = sumUp(sampledMean(memory, plan, firstLine, endLine));
  const mean = sums.counted > 0 ? sums.sum / sums.counted : 0;
  return sumsAround(mean, sums) ?? sumUp(mean);
}

/** The mean of some of the lines' distances; 0 when there is none among them. */
function sampledMean(memory: KernelMemory, plan: FilterPlan, firstLine: number, endLine: number): number {
  const { zs, stride, width, lines } = plan.grid;
  const heights = memory.singles(zs, stride * lines);
  const items = [plan.distances, width * lines] as const;
  const distances = itemBytesOf(plan.way) === 4 ? memory.singles(...items) : memory.doubles(...items);
  const positions = (endLine - firstLine) * width;
  const sampled = Math.min(Math.max(positions / SAMPLED_OF, LEAST_SAMPLED), MOST_SAMPLED);
  const step = Math.max(1, Math.floor(positions / sampled));
  let sum = 0;
  let counted = 0;
  for (let at = firstLine * width; at < endLine * width; at += step) {
    const line = Math.floor(at / width);
    const distance = distances[at] as number;
    if (heights[line * stride + at - line * width] === Number.POSITIVE_INFINITY || !(distance > 0)) continue;
    sum += distance;
    counted++;
  }
  return counted > 0 ? sum / counted : 0;
}

function measureWhole(memory: KernelMemory, plan: FilterPlan): DistanceSums {
  return measureLines(memory, plan, memory.allocate(scratchBytes(memory, plan)), 0, plan.grid.lines);
}

/** What `markLines` marks by; null where the exact threshold is needed, or a point is open: `finishFilter` has these. */
export function boundsOf(plan: FilterPlan, parts: readonly DistanceSums[]): ThresholdBounds | null {
  const error = ERRORS[plan.way];
  const isOpen = parts.some(({ open }) => open > 0);
  return error === null || isOpen || total(parts, ({ points }) => points) < LEAST_POSITIONS
    ? null
    : boundThreshold(parts, error);
}

/**
 * Sets the bits of some lines, once all lines are measured; false when a point is undecided. Parts that share a memory may do so at the same
 * time, each with a mask of its own.
 *
 * @param mask address of the bits of line 0, if there were any; those of the lines are zeros before
 */
export function markLines(
  memory: KernelMemory,
  { grid, way, distances }: FilterPlan,
  scratch: number,
  { low, high, error }: ThresholdBounds,
  mask: number,
  firstLine: number,
  endLine: number,
): boolean {
  const items = [grid.address, scratch, distances, itemBytesOf(way), mask] as const;
  const outcome = memory.kernels.markInliers(...items, firstLine, endLine, low, high, error, UNLIMITED_WORK);
  return outcome === DECIDED;
}

/** Decides in one piece, once all lines are measured. */
export function finishFilter(memory: KernelMemory, plan: FilterPlan, parts: readonly DistanceSums[]): OutlierMask {
  const { grid } = plan;
  const { width, lines } = grid;
  const lengthBytes = maskBytes(width, lines);
  const mask = memory.allocate(lengthBytes);
  let decided = plan;
  let sums = parts;
  for (;;) {
    const scratch = memory.allocate(scratchBytes(memory, decided));
    const open = total(sums, ({ open }) => open);
    if (open > 0) {
      resolveOpen(
        memory,
        decided,
        scratch,
        total(sums, ({ points }) => points),
        open,
      );
      sums = [sumLines(memory, decided, scratch, 0, lines)];
    }
    memory.bytes(mask, lengthBytes).fill(0);
    const bounds = boundsOf(decided, sums);
    if (bounds !== null && markLines(memory, decided, scratch, bounds, mask, 0, lines)) break;
    if (decided.way !== "lanes" && decided.way !== "near") {
      const statistics = memory.allocate(8 * STATISTICS_WORDS);
      memory.kernels.exactStatistics(grid.address, decided.distances, statistics);
      memory.kernels.markExactInliers(grid.address, decided.distances, statistics, mask);
      break;
    }
    decided = planAgain(memory, decided);
    sums = [measureWhole(memory, decided)];
  }
  const bits = memory.copyOf(mask, lengthBytes);
  return { bits, points: total(sums, ({ points }) => points), inliers: countBits(bits) };
}

function itemBytesOf(way: Way): 4 | 8 {
  return way === "lanes" ? 4 : 8;
}

export function maskBytes(width: number, lines: number): number {
  return Math.ceil((width * lines) / 8);
}

function suitsLanes(memory: KernelMemory, grid: Grid): boolean {
  if (memory.wasm === null) return false;
  const { offsetCount, leastSquared, greatestSquared } = lateralRange(memory, grid);
  if (offsetCount <= LANE_OFFSETS) return false;
  if (leastSquared < LEAST_SQUARED_MM || greatestSquared > GREATEST_SQUARED_MM) return false;
  const words = memory.words(grid.address, GRID_WORDS);
  const tiles = (words[TILES_WIDE] as number) * (words[TILES_HIGH] as number);
  return (
    areWithin(memory.singles(words[TILE_MINIMA] as number, tiles)) &&
    areWithin(memory.singles(words[TILE_MAXIMA] as number, tiles))
  );
}

/** A tile without points has infinite bounds. */
function areWithin(bounds: Float32Array): boolean {
  for (let nth = 0; nth < bounds.length; nth++) {
    const z = Math.abs(bounds[nth] as number);
    if (!(z <= GREATEST_Z_MM || z === Number.POSITIVE_INFINITY)) return false;
  }
  return true;
}

/** Tries some points all over the grid, and more where these do not make it clear. */
function isNoise(memory: KernelMemory, grid: Grid, best: number): boolean {
  return (
    triedCost(memory, grid, best, FIRST_TRIED) > CLEAR_WORK && triedCost(memory, grid, best, TRIED_POINTS) > NOISE_WORK
  );
}

/** Mean cost of so many points; 0 where there is none among them. */
function triedCost(memory: KernelMemory, grid: Grid, best: number, points: number): number {
  const { kernels } = memory;
  const positions = grid.width * grid.lines;
  const heights = memory.singles(grid.zs, grid.stride * grid.lines);
  const places = Math.min(points, positions);
  let tried = 0;
  let cost = 0;
  for (let nth = 0; nth < places; nth++) {
    // Anywhere within its share, so that they do not all lie in one column.
    const position = Math.floor(((nth + ((nth * GOLDEN_RATIO) % 1)) * positions) / places);
    const column = position % grid.width;
    const line = (position - column) / grid.width;
    if (heights[line * grid.stride + column] === Number.POSITIVE_INFINITY) continue;
    tried++;
    cost += kernels.tileCost(grid.address, best, column, line, TILE_WORK);
  }
  return tried > 0 ? cost / tried : 0;
}

function resolveOpen(memory: KernelMemory, plan: FilterPlan, best: number, points: number, open: number): void {
  const { grid, distances } = plan;
  const itemBytes = itemBytesOf(plan.way);
  if (open < LEAST_OPEN_FOR_TREE) {
    memory.kernels.measureOpen(grid.address, best, distances, itemBytes, 0, grid.lines, UNLIMITED_WORK);
    return;
  }
  const nodes = treeNodes(points);
  const arrays = [4 * points, 4 * points, 4 * points, 4 * points, 4 * nodes, nodes, STACK_BYTES];
  const words = [0, ...arrays.map((lengthBytes) => memory.allocate(lengthBytes))];
  const tree = memory.allocate(4 * TREE_WORDS);
  memory.words(tree, TREE_WORDS).set(words);
  memory.kernels.plantTree(grid.address, tree);
  memory.kernels.resolveByTree(tree, best, distances, itemBytes);
}
