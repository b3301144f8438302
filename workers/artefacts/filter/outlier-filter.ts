import { countBits } from "../cloud/line-counts.js";
import type { KernelMemory } from "../kernel-memory.js";
import type { Grid } from "./grid-layout.js";
import { boundThreshold, type DistanceSums } from "./threshold-bounds.js";

/**
 * Largest relative error of a distance by the lanes: 5 roundings of f32 (assembly/filter/distance-lanes.ts) and their
 * products.
 */
const LANES_ERROR = 5.01 * 2 ** -24;
/** With fewer points exact distances cost nothing, and rounding has more influence on the threshold. */
const LEAST_POINTS = 2_000;
/** The lanes look at this many entries of the offset table, and at the bound of the next one. */
const LANE_OFFSETS = 80;
/** Within these limits squares of f32 keep their full precision and do not overflow. */
const LEAST_SQUARED_MM = 1e-30;
const GREATEST_SQUARED_MM = 1e30;
const GREATEST_Z_MM = 1e15;
/**
 * What the search through tiles may cost per point on average, in visits of four tiles. A tile that is looked into
 * counts 16. On a surface, a point that is far off costs some hundreds, but such points are few. In noise every point
 * costs more than this: tiles do not help there, and the tree is faster.
 */
const TILE_WORK = 50;
const SCRATCH_BYTES = 2_048;
/** Five f64: the number of points, the number of points with d > 0, and three sums. */
const SUMS = 5;

export interface OutlierMask {
  /** Bit (line x width + column), lowest first: set for a point that stays. */
  bits: Uint8Array<ArrayBuffer>;
  points: number;
  inliers: number;
}

/**
 * Filters a grid whose heights are in the memory.
 *
 * Distances are first measured in f32, four points at a time, with a known error. Points that this error leaves in
 * doubt are searched again exactly. This fails if an exact distance is within the threshold's own doubt, or if tiles do
 * not help. Then a tree measures all points exactly, and the threshold is computed as Open3D does. So the result is
 * always the exact one.
 */
export function filterOutliers(memory: KernelMemory, grid: Grid): OutlierMask {
  const { kernels } = memory;
  const points = kernels.boundTiles(grid.address);
  const maskBytes = Math.ceil((grid.width * grid.lines) / 8);
  const mask = memory.allocate(maskBytes);
  const scratch = memory.allocate(SCRATCH_BYTES);
  memory.bytes(mask, maskBytes).fill(0);
  const { usedBytes } = memory;
  const isDecided = points >= LEAST_POINTS && suitsLanes(memory, grid) && decideByLanes(memory, grid, mask, scratch);
  if (!isDecided) {
    memory.bytes(mask, maskBytes).fill(0);
    memory.continueFrom(usedBytes);
    const distances = memory.allocate(8 * grid.width * grid.lines);
    kernels.measureByTree(grid.address, scratch, distances, points, memory.allocate(kernels.treeBytes(points)));
    kernels.markExactInliers(grid.address, distances, mask);
  }
  const bits = memory.copyOf(mask, maskBytes);
  return { bits, points, inliers: countBits(bits) };
}

/** Returns false if a point is left in doubt, or if tiles do not help. The mask is void then. */
function decideByLanes(memory: KernelMemory, grid: Grid, mask: number, scratch: number): boolean {
  const { kernels } = memory;
  const positions = grid.width * grid.lines;
  const distances = memory.allocate(4 * positions);
  if (kernels.measureLanes(grid.address, scratch, distances, TILE_WORK * positions) === 0) return false;
  const { low, high } = boundThreshold(sumDistances(memory, grid, distances, scratch), LANES_ERROR);
  return kernels.markInliers(grid.address, scratch, distances, mask, low, high, LANES_ERROR) !== 0;
}

/** Sums twice: first for the mean, then around it. */
function sumDistances(memory: KernelMemory, grid: Grid, distances: number, scratch: number): DistanceSums {
  const sumAround = (mean: number): number[] => {
    memory.kernels.sumDistances(grid.address, distances, mean, scratch);
    return [...memory.doubles(scratch, SUMS)];
  };
  const [points = 0, counted = 0, sum = 0] = sumAround(0);
  const [, , , squares = 0, spread = 0] = sumAround(sum / points);
  return { points, counted, sum, squares, spread };
}

/** Whether f32 has the precision and the range, and the offset table is long enough. */
function suitsLanes(memory: KernelMemory, { offsets, tiles, leastSquaredMm, greatestSquaredMm }: Grid): boolean {
  if (offsets.count <= LANE_OFFSETS) return false;
  if (leastSquaredMm < LEAST_SQUARED_MM || greatestSquaredMm > GREATEST_SQUARED_MM) return false;
  return areWithin(memory.singles(tiles.minima, tiles.count)) && areWithin(memory.singles(tiles.maxima, tiles.count));
}

/** A tile without points has infinite bounds. */
function areWithin(bounds: Float32Array): boolean {
  for (let nth = 0; nth < bounds.length; nth++) {
    const z = Math.abs(bounds[nth] as number);
    if (z > GREATEST_Z_MM && z !== Number.POSITIVE_INFINITY) return false;
  }
  return true;
}
