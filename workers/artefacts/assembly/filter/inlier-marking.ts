/** Makes the mask from approximate distances, eight at a time where they leave no doubt. */
import { f32At } from "../linear-memory";
import { Grid, lineOf } from "./grid";
import { meanDistance } from "./neighbour-search";
import { setBit } from "./outlier-statistics";

/** Limits are rounded to f32. So a distance that is this near to a limit is checked by itself. */
const CAUTION: f64 = 0.000001;

/**
 * Decides which points stay, from approximate distances (f32) whose relative error is at most `error`.
 *
 * The exact threshold lies between `low` and `high`. A point whose distance leaves no doubt is decided at once. Other
 * points are searched again, exactly. If an exact distance lies between `low` and `high`, only the exact threshold
 * could decide.
 *
 * @param mask as of `markExactInliers`
 * @returns false where a point is undecided: then the mask is void
 */
export function markInliers(
  grid: Grid,
  best: usize,
  distances: usize,
  mask: usize,
  low: f64,
  high: f64,
  error: f64,
): bool {
  const below = f32x4.splat(<f32>(low * (1 - error) * (1 - CAUTION)));
  const above = f32x4.splat(<f32>(high * (1 + error) * (1 + CAUTION)));
  for (let line = 0; line < grid.lines; line++) {
    const zs = lineOf(grid, line);
    let column = 0;
    for (; column + 8 <= grid.width; column += 8) {
      const at = line * grid.width + column;
      const z = zs + (column << 2);
      const d = distances + (at << 2);
      const kept = keptOf(z, d, below) | (keptOf(z + 16, d + 16, below) << 4);
      const left = leftOf(z, d, above) | (leftOf(z + 16, d + 16, above) << 4);
      const bits = mask + (at >> 3);
      if (kept !== 0) store<u16>(bits, load<u16>(bits) | <u16>(kept << (at & 7)));
      for (let rest = ~(kept | left) & 255; rest !== 0; rest &= rest - 1) {
        if (!markInlier(grid, best, distances, mask, column + ctz(rest), line, low, high, error)) return false;
      }
    }
    for (; column < grid.width; column++) {
      if (f32At(zs, column) === Infinity) continue;
      if (!markInlier(grid, best, distances, mask, column, line, low, high, error)) return false;
    }
  }
  return true;
}

/** Bits of the points that certainly stay. */
function keptOf(z: usize, d: usize, below: v128): i32 {
  const distances = v128.load(d);
  const isPoint = f32x4.ne(v128.load(z), f32x4.splat(Infinity));
  const isNear = v128.and(f32x4.gt(distances, f32x4.splat(0)), f32x4.lt(distances, below));
  return i32x4.bitmask(v128.and(isPoint, isNear));
}

/** Bits of the positions without a point, and of the points that certainly go. */
function leftOf(z: usize, d: usize, above: v128): i32 {
  return i32x4.bitmask(v128.or(f32x4.eq(v128.load(z), f32x4.splat(Infinity)), f32x4.gt(v128.load(d), above)));
}

/** Decides one point. */
function markInlier(
  grid: Grid,
  best: usize,
  distances: usize,
  mask: usize,
  column: i32,
  line: i32,
  low: f64,
  high: f64,
  error: f64,
): bool {
  const at = line * grid.width + column;
  let distance = f32At(distances, at);
  if (distance > high * (1 + error)) return true;
  if (distance >= low * (1 - error)) {
    distance = meanDistance(grid, best, column, line, Infinity);
    if (distance >= high) return true;
    if (distance >= low) return false;
  }
  if (distance > 0) setBit(mask, at);
  return true;
}
