/** kernels/inlier-marking.ts for eight f32 distances at a time, as far as they leave no doubt. */

// @ts-nocheck: AssemblyScript

import { i32At } from "./linear-memory.js";
import { STRIDE, WIDTH, ZS } from "../kernels/neighbour-search.js";
import { DECIDED, markInlier, UNDECIDED } from "../kernels/outlier-statistics.js";

/** Limits are rounded to f32: what comes as near to one is looked at by itself. */
const CAUTION: f64 = 0.000001;

export function markInliers(
  grid: i32,
  best: i32,
  distances: i32,
  itemBytes: i32,
  mask: i32,
  firstLine: i32,
  endLine: i32,
  low: f64,
  high: f64,
  error: f64,
  work: i32,
): i32 {
  const width = i32At(grid, WIDTH);
  const stride = i32At(grid, STRIDE);
  const zs = i32At(grid, ZS);
  const surelyBelow = low * (1.0 - error);
  const surelyAbove = high * (1.0 + error);
  const below = f32x4.splat(<f32>(surelyBelow * (1.0 - CAUTION)));
  const above = f32x4.splat(<f32>(surelyAbove * (1.0 + CAUTION)));
  for (let line = firstLine; line < endLine; line++) {
    let column = 0;
    if (itemBytes == 4) {
      for (; column + 8 <= width; column += 8) {
        const at = line * width + column;
        const z = <usize>(zs + ((line * stride + column) << 2));
        const d = <usize>(distances + (at << 2));
        const kept = keptOf(z, d, below) | (keptOf(z + 16, d + 16, below) << 4);
        const left = leftOf(z, d, above) | (leftOf(z + 16, d + 16, above) << 4);
        const bits = <usize>(mask + (at >> 3));
        if (kept != 0) store<u16>(bits, load<u16>(bits) | <u16>(kept << (at & 7)));
        let rest = ~(kept | left) & 255;
        while (rest != 0) {
          const lane = ctz(rest);
          rest &= rest - 1;
          const outcome = markInlier(grid, best, distances, itemBytes, mask, column + lane, line, low, high, surelyBelow, surelyAbove, work);
          if (outcome == UNDECIDED) return UNDECIDED;
        }
      }
    }
    for (; column < width; column++) {
      const outcome = markInlier(grid, best, distances, itemBytes, mask, column, line, low, high, surelyBelow, surelyAbove, work);
      if (outcome == UNDECIDED) return UNDECIDED;
    }
  }
  return DECIDED;
}

/** Points that stay for sure. */
@inline function keptOf(z: usize, d: usize, below: v128): i32 {
  const distances = v128.load(d);
  const isPoint = f32x4.ne(v128.load(z), f32x4.splat(Infinity));
  const isNear = v128.and(f32x4.gt(distances, f32x4.splat(0)), f32x4.lt(distances, below));
  return i32x4.bitmask(v128.and(isPoint, isNear));
}

/** Positions without a point, and points that go for sure. */
@inline function leftOf(z: usize, d: usize, above: v128): i32 {
  return i32x4.bitmask(v128.or(f32x4.eq(v128.load(z), f32x4.splat(Infinity)), f32x4.gt(v128.load(d), above)));
}
