import type { Grid } from "./grid-layout.js";
import type { KernelMemory } from "./kernel-memory.js";
import { NEAR_ERROR } from "./kernels/near-distances.js";
import {
  GRID_WORDS,
  SCRATCH_BYTES,
  TILE_MAXIMA,
  TILE_MINIMA,
  TILES_HIGH,
  TILES_WIDE,
} from "./kernels/neighbour-search.js";
import { COUNT, DECIDED, DEVIATION, MEAN, OPEN, STATISTICS_WORDS } from "./kernels/outlier-statistics.js";
import { TREE_WORDS, treeNodes } from "./kernels/point-tree.js";
import { countBits } from "./line-counts.js";

/** Largest relative error of the lanes' distances: 5 roundings of f32 (assembly/distance-lanes.ts), and their products. */
const LANES_ERROR = 5.01 * 2 ** -24;
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
/** For fewer than these the tree is not worth planting. */
const LEAST_OPEN_FOR_TREE = 64;
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

/** A filter under way in a memory, as data: a thread that shares the memory can measure some lines of it. */
export interface FilterPlan {
  grid: Grid;
  way: Way;
  /** Addresses: of each part's scratch, the distances (f32 for lanes, else f64; line x width + column), sums, and the mask. */
  scratches: number[];
  distances: number;
  statistics: number;
  mask: number;
}

/** Filters a grid in the memory, whose heights are there. */
export function filterOutliers(memory: KernelMemory, grid: Grid): OutlierMask {
  const plan = planFilter(memory, grid, 1);
  measureLines(memory, plan, 0, 0, grid.lines);
  return finishFilter(memory, plan);
}

/** Lays out what the filter needs beside the grid: 4 bytes a position where lanes do, else 8, and an eighth for the mask. */
export function planFilter(memory: KernelMemory, grid: Grid, parts: number): FilterPlan {
  const { address, width, lines } = grid;
  for (let tileLine = 0; tileLine < Math.ceil(lines / 8); tileLine++) memory.kernels.boundTiles(address, tileLine);
  const way = wayFor(memory, grid, memory.allocate(SCRATCH_BYTES));
  const scratches = Array.from({ length: parts }, () => memory.allocate(scratchBytes(memory, grid, way)));
  const statistics = memory.allocate(8 * STATISTICS_WORDS);
  const mask = memory.allocate(maskBytes(grid));
  const distances = memory.allocate(itemBytesOf(way) * width * lines);
  return { grid, way, scratches, distances, statistics, mask };
}

function scratchBytes(memory: KernelMemory, grid: Grid, way: Way): number {
  if (way === "lanes") return LANES_SCRATCH_BYTES;
  if (way === "exactLanes" && memory.wasm !== null) return memory.wasm.exactLanesScratchBytes(grid.address);
  return way === "near" ? memory.kernels.nearScratchBytes(grid.address) : SCRATCH_BYTES;
}

function wayFor(memory: KernelMemory, grid: Grid, best: number): Way {
  if (grid.width * grid.lines < LEAST_POSITIONS) return "exact";
  if (isNoise(memory, grid, best)) return "tree";
  return suitsLanes(memory, grid) ? "lanes" : "near";
}

/** Measures the mean distances of some lines: parts that share a memory may do so at the same time. */
export function measureLines(
  memory: KernelMemory,
  plan: FilterPlan,
  part: number,
  firstLine: number,
  endLine: number,
): void {
  const { grid, way, distances } = plan;
  const { address, width, squares, squaresPitch } = grid;
  const best = plan.scratches[part] as number;
  const { kernels, wasm } = memory;
  if (way === "lanes" && wasm !== null) {
    wasm.measureLanes(address, best, distances, squares, squaresPitch, firstLine, endLine, TILE_WORK);
  } else if (way === "exactLanes" && wasm !== null) {
    wasm.measureExactLanes(address, best, distances, firstLine, endLine, TILE_WORK);
  } else if (way === "near") {
    kernels.measureNear(address, best, distances, firstLine, endLine, TILE_WORK);
  } else if (way === "exact") {
    kernels.measureExactly(address, best, distances, firstLine, endLine, TILE_WORK);
  } else {
    // All open: the tree answers in the end.
    memory.doubles(distances + 8 * firstLine * width, (endLine - firstLine) * width).fill(-1);
  }
}

/** Decides, once all lines are measured. */
export function finishFilter(memory: KernelMemory, plan: FilterPlan): OutlierMask {
  let decided = plan;
  while (!decide(memory, decided)) {
    const way = decided.way === "lanes" ? "exactLanes" : "exact";
    const { grid } = decided;
    const distances = itemBytesOf(decided.way) === 8 ? decided.distances : memory.allocate(8 * grid.width * grid.lines);
    const scratches = [memory.allocate(scratchBytes(memory, grid, way))];
    decided = { ...decided, way, scratches, distances };
    measureLines(memory, decided, 0, 0, grid.lines);
  }
  const bits = memory.bytes(plan.mask, maskBytes(plan.grid)).slice();
  return { bits, points: memory.doubles(plan.statistics, 1)[COUNT] as number, inliers: countBits(bits) };
}

function itemBytesOf(way: Way): 4 | 8 {
  return way === "lanes" ? 4 : 8;
}

function maskBytes({ width, lines }: Grid): number {
  return Math.ceil((width * lines) / 8);
}

function suitsLanes(memory: KernelMemory, grid: Grid): boolean {
  if (memory.wasm === null || grid.offsetCount <= LANE_OFFSETS) return false;
  if (grid.leastSquared < LEAST_SQUARED_MM || grid.greatestSquared > GREATEST_SQUARED_MM) return false;
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

/** Tries points all over the grid. */
function isNoise(memory: KernelMemory, grid: Grid, best: number): boolean {
  const { kernels } = memory;
  const positions = grid.width * grid.lines;
  const step = Math.max(1, positions / TRIED_POINTS);
  let tried = 0;
  let cost = 0;
  for (let nth = 0; nth * step < positions; nth++) {
    const position = Math.floor(nth * step);
    const column = position % grid.width;
    const line = (position - column) / grid.width;
    if (memory.singles(grid.zs + 4 * (line * grid.stride + column), 1)[0] === Number.POSITIVE_INFINITY) continue;
    tried++;
    cost += kernels.tileCost(grid.address, best, column, line, TILE_WORK);
  }
  return cost > tried * NOISE_WORK;
}

/** Sets the mask; false when the way's error leaves a point undecided. */
function decide(memory: KernelMemory, plan: FilterPlan): boolean {
  const { grid, way, distances, statistics, mask } = plan;
  const { address, lines } = grid;
  const itemBytes = itemBytesOf(way);
  const best = plan.scratches[0] as number;
  const sumUp = (around: number) => {
    memory.kernels.approximateSums(address, distances, itemBytes, 0, lines, around, statistics);
    return memory.doubles(statistics, STATISTICS_WORDS).slice();
  };
  let sums = sumUp(0);
  if ((sums[OPEN] as number) > 0) {
    resolveOpen(memory, plan, sums[COUNT] as number, sums[OPEN] as number);
    sums = sumUp(0);
  }
  memory.bytes(mask, maskBytes(grid)).fill(0);
  if (way !== "lanes" && way !== "near") {
    memory.kernels.exactStatistics(address, distances, statistics);
    memory.kernels.markExactInliers(address, distances, statistics, mask);
    return true;
  }
  const count = sums[COUNT] as number;
  if (count < LEAST_POSITIONS) return false;
  const mean = (sums[MEAN] as number) / count;
  const deviation = Math.sqrt((sumUp(mean)[DEVIATION] as number) / (count - 1));
  const threshold = mean + 2 * deviation;
  const error = way === "lanes" ? LANES_ERROR : NEAR_ERROR;
  // Mean and deviation of values that are each off by a share of themselves: the mean by that share of it, the deviation by that
  // share of their root mean square. The other term is the rounding of the sums, here and where the exact threshold is computed.
  const doubt = (1.01 * error + count * 2 ** -52) * (mean + 2 * Math.sqrt(mean * mean + deviation * deviation));
  const [low, high] = [threshold - doubt, threshold + doubt];
  const outcome = memory.kernels.markInliers(
    address,
    best,
    distances,
    itemBytes,
    mask,
    0,
    lines,
    low,
    high,
    error,
    UNLIMITED_WORK,
  );
  return outcome === DECIDED;
}

function resolveOpen(memory: KernelMemory, plan: FilterPlan, points: number, open: number): void {
  const { grid, distances } = plan;
  const itemBytes = itemBytesOf(plan.way);
  const best = plan.scratches[0] as number;
  if (open < LEAST_OPEN_FOR_TREE) {
    memory.kernels.measureOpen(grid.address, best, distances, itemBytes, UNLIMITED_WORK);
    return;
  }
  const nodes = treeNodes(points);
  const arrays = [4 * points, 4 * points, 4 * points, 4 * points, 4 * nodes, nodes];
  const words = [0, ...arrays.map((lengthBytes) => memory.allocate(lengthBytes))];
  const tree = memory.allocate(4 * TREE_WORDS);
  memory.words(tree, TREE_WORDS).set(words);
  memory.kernels.plantTree(grid.address, tree);
  memory.kernels.resolveByTree(tree, best, distances, itemBytes);
}
