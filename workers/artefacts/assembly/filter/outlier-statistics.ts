/**
 * Statistical outlier removal over an organised grid, as Open3D's `remove_statistical_outlier(20, 2.0)` defines it
 * (PointCloud::RemoveStatisticalOutliers; Rusu et al., "Towards 3D Point Cloud Based Object Maps for Household
 * Environments", 2008). The n points have the mean distances d (neighbour-search.ts):
 *
 *     mean = Σ d / n,   std = sqrt(Σ (d - mean)² / (n - 1)),   a point stays if 0 < d < mean + 2 std
 *
 * A point with d = 0 counts in n and adds to neither sum. Everything is f64, summed in scan order as Open3D does.
 */
import { f32At, f64At } from "../linear-memory";
import { Grid, lineOf } from "./grid";
import { squared } from "./neighbour-search";

const STD_RATIO: f64 = 2;

/**
 * Sets the bit of every point that stays: bit (line x width + column), the lowest of a byte first. The mask must be
 * zeros.
 */
export function markExactInliers(grid: Grid, distances: usize, mask: usize): void {
  const threshold = exactThreshold(grid, distances);
  for (let line = 0; line < grid.lines; line++) {
    const points = lineOf(grid, line);
    for (let column = 0; column < grid.width; column++) {
      if (f32At(points, column) === Infinity) continue;
      const at = line * grid.width + column;
      const distance = f64At(distances, at);
      if (distance > 0 && distance < threshold) setBit(mask, at);
    }
  }
}

function exactThreshold(grid: Grid, distances: usize): f64 {
  let count: f64 = 0;
  let sum: f64 = 0;
  for (let line = 0; line < grid.lines; line++) {
    const points = lineOf(grid, line);
    for (let column = 0; column < grid.width; column++) {
      if (f32At(points, column) === Infinity) continue;
      const distance = f64At(distances, line * grid.width + column);
      count += 1;
      if (distance > 0) sum += distance;
    }
  }
  const mean = sum / count;
  let squares: f64 = 0;
  for (let line = 0; line < grid.lines; line++) {
    const points = lineOf(grid, line);
    for (let column = 0; column < grid.width; column++) {
      if (f32At(points, column) === Infinity) continue;
      const distance = f64At(distances, line * grid.width + column);
      if (distance > 0) squares += squared(distance - mean);
    }
  }
  return mean + STD_RATIO * sqrt<f64>(squares / (count - 1));
}

export function setBit(mask: usize, at: i32): void {
  const byte = mask + (at >> 3);
  const bit = 1 << (at & 7);
  store<u8>(byte, load<u8>(byte) | <u8>bit);
}
