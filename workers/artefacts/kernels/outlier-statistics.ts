/**
 * Statistical outlier removal over an organised grid, as Open3D's `remove_statistical_outlier(20, 2.0)` defines it
 * (PointCloud::RemoveStatisticalOutliers; Rusu et al., "Towards 3D Point Cloud Based Object Maps for Household Environments", 2008): with the
 * mean distances d of the n points (neighbour-search.ts),
 *
 *     mean = Σ d / n,   std = sqrt(Σ (d - mean)² / (n - 1)),   a point stays if 0 < d < mean + 2 std
 *
 * where a point with d = 0 counts in n and adds to neither sum. All in f64, summed in scan order as Open3D does.
 */
import {
  f32At,
  type f64,
  f64At,
  type i32,
  i32At,
  setF32,
  setF64,
  setU8,
  squareRoot,
  u8At,
  viewDoubles,
  viewSingles,
} from "./linear-memory.js";
import { LINES, meanDistance, STRIDE, UNRESOLVED, WIDTH, ZS } from "./neighbour-search.js";

const STD_RATIO: f64 = 2.0;

/** Results of a pass over the distances (f64): number of points, mean and standard deviation, points whose search is open, points with d > 0, Σ d |d - mean|. */
export const COUNT: i32 = 0;
export const MEAN: i32 = 1;
export const DEVIATION: i32 = 2;
export const OPEN: i32 = 3;
export const COUNTED: i32 = 4;
export const SPREAD: i32 = 5;
export const STATISTICS_WORDS: i32 = 6;

/** Outcomes of `markInliers`. */
export const DECIDED: i32 = 0;
/** Approximate distances do not decide every point: the exact ones of all have to be computed. */
export const UNDECIDED: i32 = 1;

/** Exact mean distances (f64) of the points of some lines. Positions without a point are left as they are. */
export function measureExactly(grid: i32, best: i32, distances: i32, firstLine: i32, endLine: i32, work: i32): void {
  const width = i32At(grid, WIDTH);
  const stride = i32At(grid, STRIDE);
  const zs = i32At(grid, ZS);
  for (let line: i32 = firstLine; line < endLine; line++) {
    for (let column: i32 = 0; column < width; column++) {
      if (f32At(zs, line * stride + column) === Infinity) continue;
      setF64(distances, line * width + column, meanDistance(grid, best, column, line, work));
    }
  }
}

/** Statistics of exact distances. */
export function exactStatistics(grid: i32, distances: i32, statistics: i32): void {
  const width = i32At(grid, WIDTH);
  const height = i32At(grid, LINES);
  const stride = i32At(grid, STRIDE);
  const zs = i32At(grid, ZS);
  let count: f64 = 0.0;
  let sum: f64 = 0.0;
  for (let line: i32 = 0; line < height; line++) {
    for (let column: i32 = 0; column < width; column++) {
      if (f32At(zs, line * stride + column) === Infinity) continue;
      const distance = f64At(distances, line * width + column);
      count += 1.0;
      if (distance > 0.0) sum += distance;
    }
  }
  const mean = sum / count;
  let squares: f64 = 0.0;
  for (let line: i32 = 0; line < height; line++) {
    for (let column: i32 = 0; column < width; column++) {
      if (f32At(zs, line * stride + column) === Infinity) continue;
      const distance = f64At(distances, line * width + column);
      if (distance > 0.0) squares += (distance - mean) * (distance - mean);
    }
  }
  setF64(statistics, COUNT, count);
  setF64(statistics, MEAN, mean);
  setF64(statistics, DEVIATION, squareRoot(squares / (count - 1.0)));
}

/** Sets the bit of every point that stays: bit (line x width + column), the lowest of a byte first. The mask is zeros before. */
export function markExactInliers(grid: i32, distances: i32, statistics: i32, mask: i32): void {
  const width = i32At(grid, WIDTH);
  const height = i32At(grid, LINES);
  const stride = i32At(grid, STRIDE);
  const zs = i32At(grid, ZS);
  const threshold = f64At(statistics, MEAN) + STD_RATIO * f64At(statistics, DEVIATION);
  for (let line: i32 = 0; line < height; line++) {
    for (let column: i32 = 0; column < width; column++) {
      if (f32At(zs, line * stride + column) === Infinity) continue;
      const at = line * width + column;
      const distance = f64At(distances, at);
      if (distance > 0.0 && distance < threshold) setBit(mask, at);
    }
  }
}

function setBit(mask: i32, at: i32): void {
  const byte = at >> 3;
  setU8(mask, byte, u8At(mask, byte) | (1 << (at & 7)));
}

/** Exact mean distances of those points of some lines whose distance is negative. */
export function measureOpen(
  grid: i32,
  best: i32,
  distances: i32,
  itemBytes: i32,
  firstLine: i32,
  endLine: i32,
  work: i32,
): void {
  const width = i32At(grid, WIDTH);
  const stride = i32At(grid, STRIDE);
  const zs = i32At(grid, ZS);
  for (let line: i32 = firstLine; line < endLine; line++) {
    for (let column: i32 = 0; column < width; column++) {
      if (f32At(zs, line * stride + column) === Infinity) continue;
      const at = line * width + column;
      if (itemAt(distances, itemBytes, at) >= 0.0) continue;
      const distance = meanDistance(grid, best, column, line, work);
      if (itemBytes === 4) setF32(distances, at, distance);
      else setF64(distances, at, distance);
    }
  }
}

function itemAt(at: i32, itemBytes: i32, index: i32): f64 {
  return itemBytes === 4 ? f32At(at, index) : f64At(at, index);
}

/** Statistics of approximate distances, f32 or f64 by their size: sums over the points of some lines, squares around a given mean. */
export function approximateSums(
  grid: i32,
  distances: i32,
  itemBytes: i32,
  firstLine: i32,
  endLine: i32,
  around: f64,
  statistics: i32,
): void {
  const width = i32At(grid, WIDTH);
  const stride = i32At(grid, STRIDE);
  const singles = viewSingles();
  const doubles = viewDoubles();
  let count: f64 = 0.0;
  let sum: f64 = 0.0;
  let squares: f64 = 0.0;
  let open: f64 = 0.0;
  let counted: f64 = 0.0;
  let spread: f64 = 0.0;
  for (let line: i32 = firstLine; line < endLine; line++) {
    const zs = (i32At(grid, ZS) >> 2) + line * stride;
    for (let column: i32 = 0; column < width; column++) {
      if ((singles[zs + column] as f64) === Infinity) continue;
      const at = line * width + column;
      let distance: f64 = 0.0;
      if (itemBytes === 4) distance = singles[(distances >> 2) + at] as f64;
      else distance = doubles[(distances >> 3) + at] as f64;
      count += 1.0;
      if (distance > 0.0) {
        counted += 1.0;
        sum += distance;
        squares += (distance - around) * (distance - around);
        spread += distance * Math.abs(distance - around);
      } else if (distance < 0.0) {
        open += 1.0;
      }
    }
  }
  setF64(statistics, COUNT, count);
  setF64(statistics, MEAN, sum);
  setF64(statistics, DEVIATION, squares);
  setF64(statistics, OPEN, open);
  setF64(statistics, COUNTED, counted);
  setF64(statistics, SPREAD, spread);
}

/** Decides one position, as `markInliers` says. */
export function markInlier(
  grid: i32,
  best: i32,
  distances: i32,
  itemBytes: i32,
  mask: i32,
  column: i32,
  line: i32,
  low: f64,
  high: f64,
  surelyBelow: f64,
  surelyAbove: f64,
  work: i32,
): i32 {
  if (f32At(i32At(grid, ZS), line * i32At(grid, STRIDE) + column) === Infinity) return DECIDED;
  const at = line * i32At(grid, WIDTH) + column;
  let distance = itemAt(distances, itemBytes, at);
  if (distance > surelyAbove) return DECIDED;
  if (distance >= surelyBelow) {
    distance = meanDistance(grid, best, column, line, work);
    if (distance === UNRESOLVED) return UNDECIDED;
    if (distance >= high) return DECIDED;
    if (distance >= low) return UNDECIDED;
  }
  if (distance > 0.0) setBit(mask, at);
  return DECIDED;
}
