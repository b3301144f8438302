/**
 * Two positions whose nineteen nearest are not surely among the twenty laterally nearest positions: goes on through the offset table, and keeps
 * the best nineteen in order.
 */

// @ts-nocheck: AssemblyScript

import { i32At } from "./linear-memory.js";
import { OFFSET_BOUNDS, STRIDE, XS, ZS } from "../kernels/neighbour-search.js";

const FEW: i32 = 20;
const MORE: i32 = 28;
export const MOST: i32 = 80;

/**
 * @param plan of every entry of the offset table from the twentieth on: byte offsets into z and x (i32), and the squared dy (f64)
 * @param one the nineteen smallest distances of a position to the twenty before, rising; `other` those of another in the same line
 * @param means gets the two means; 16 bytes on the worst of the nineteen
 * @returns a bit for each whose mean is right
 */
export function meansOfMore(
  grid: i32,
  plan: usize,
  line: i32,
  oneColumn: i32,
  otherColumn: i32,
  one: usize,
  other: usize,
  means: usize,
): i32 {
  const bounds = i32At(grid, OFFSET_BOUNDS);
  const oneX = <usize>(i32At(grid, XS) + (oneColumn << 2));
  const otherX = <usize>(i32At(grid, XS) + (otherColumn << 2));
  const lineAt = i32At(grid, ZS) + ((line * i32At(grid, STRIDE)) << 2);
  const oneZ = <usize>(lineAt + (oneColumn << 2));
  const otherZ = <usize>(lineAt + (otherColumn << 2));
  const x = singlesOf(oneX, otherX, 0);
  const z = singlesOf(oneZ, otherZ, 0);
  let b0 = v128.load64_lane(other, v128.load64_zero(one, 0), 1, 0);
  let b1 = v128.load64_lane(other, v128.load64_zero(one, 8), 1, 8);
  let b2 = v128.load64_lane(other, v128.load64_zero(one, 16), 1, 16);
  let b3 = v128.load64_lane(other, v128.load64_zero(one, 24), 1, 24);
  let b4 = v128.load64_lane(other, v128.load64_zero(one, 32), 1, 32);
  let b5 = v128.load64_lane(other, v128.load64_zero(one, 40), 1, 40);
  let b6 = v128.load64_lane(other, v128.load64_zero(one, 48), 1, 48);
  let b7 = v128.load64_lane(other, v128.load64_zero(one, 56), 1, 56);
  let b8 = v128.load64_lane(other, v128.load64_zero(one, 64), 1, 64);
  let b9 = v128.load64_lane(other, v128.load64_zero(one, 72), 1, 72);
  let b10 = v128.load64_lane(other, v128.load64_zero(one, 80), 1, 80);
  let b11 = v128.load64_lane(other, v128.load64_zero(one, 88), 1, 88);
  let b12 = v128.load64_lane(other, v128.load64_zero(one, 96), 1, 96);
  let b13 = v128.load64_lane(other, v128.load64_zero(one, 104), 1, 104);
  let b14 = v128.load64_lane(other, v128.load64_zero(one, 112), 1, 112);
  let b15 = v128.load64_lane(other, v128.load64_zero(one, 120), 1, 120);
  let b16 = v128.load64_lane(other, v128.load64_zero(one, 128), 1, 128);
  let b17 = v128.load64_lane(other, v128.load64_zero(one, 136), 1, 136);
  let b18 = v128.load64_lane(other, v128.load64_zero(one, 144), 1, 144);
  const farBound = f64x2.splat(sqrt<f64>(load<f64>(<usize>(bounds + 8 * MOST))));
  const infinity = f64x2.splat(Infinity);
  let accepted = f64x2.splat(0);
  for (let nth = FEW; nth < MOST; ) {
    for (const end = nth + 4; nth < end; nth++) {
      const entry = plan + (<usize>(nth - FEW) << 4);
      const dz = f64x2.sub(singlesOf(oneZ, otherZ, <usize>load<i32>(entry)), z);
      const dx = f64x2.sub(singlesOf(oneX, otherX, <usize>load<i32>(entry, 4)), x);
      const lateral = f64x2.add(f64x2.mul(dx, dx), v128.load64_splat(entry, 8));
      let d = f64x2.sqrt(f64x2.add(lateral, f64x2.mul(dz, dz)));
      if (i64x2.bitmask(f64x2.lt(d, b18)) == 0) continue;
      let t: v128;
      t = f64x2.pmax(b0, d); b0 = f64x2.pmin(b0, d);
      d = f64x2.pmax(b1, t); b1 = f64x2.pmin(b1, t);
      t = f64x2.pmax(b2, d); b2 = f64x2.pmin(b2, d);
      d = f64x2.pmax(b3, t); b3 = f64x2.pmin(b3, t);
      t = f64x2.pmax(b4, d); b4 = f64x2.pmin(b4, d);
      d = f64x2.pmax(b5, t); b5 = f64x2.pmin(b5, t);
      t = f64x2.pmax(b6, d); b6 = f64x2.pmin(b6, d);
      d = f64x2.pmax(b7, t); b7 = f64x2.pmin(b7, t);
      t = f64x2.pmax(b8, d); b8 = f64x2.pmin(b8, d);
      d = f64x2.pmax(b9, t); b9 = f64x2.pmin(b9, t);
      t = f64x2.pmax(b10, d); b10 = f64x2.pmin(b10, d);
      d = f64x2.pmax(b11, t); b11 = f64x2.pmin(b11, t);
      t = f64x2.pmax(b12, d); b12 = f64x2.pmin(b12, d);
      d = f64x2.pmax(b13, t); b13 = f64x2.pmin(b13, t);
      t = f64x2.pmax(b14, d); b14 = f64x2.pmin(b14, d);
      d = f64x2.pmax(b15, t); b15 = f64x2.pmin(b15, t);
      t = f64x2.pmax(b16, d); b16 = f64x2.pmin(b16, d);
      d = f64x2.pmax(b17, t); b17 = f64x2.pmin(b17, t);
      b18 = f64x2.pmin(b18, d);
    }
    // Roots keep the order of squares: whatever lies outside has no smaller one than the bound's.
    accepted = f64x2.le(b18, f64x2.splat(sqrt<f64>(load<f64>(<usize>(bounds + 8 * nth)))));
    let done = accepted;
    if (nth == MORE) done = v128.or(done, v128.and(f64x2.gt(b18, farBound), f64x2.lt(b18, infinity)));
    if (v128.all_true<i64>(done)) break;
  }
  let sum = f64x2.add(b0, b1);
  sum = f64x2.add(sum, b2);
  sum = f64x2.add(sum, b3);
  sum = f64x2.add(sum, b4);
  sum = f64x2.add(sum, b5);
  sum = f64x2.add(sum, b6);
  sum = f64x2.add(sum, b7);
  sum = f64x2.add(sum, b8);
  sum = f64x2.add(sum, b9);
  sum = f64x2.add(sum, b10);
  sum = f64x2.add(sum, b11);
  sum = f64x2.add(sum, b12);
  sum = f64x2.add(sum, b13);
  sum = f64x2.add(sum, b14);
  sum = f64x2.add(sum, b15);
  sum = f64x2.add(sum, b16);
  sum = f64x2.add(sum, b17);
  sum = f64x2.add(sum, b18);
  v128.store(means, f64x2.div(sum, f64x2.splat(20)));
  v128.store(means, b18, 16);
  return i64x2.bitmask(accepted);
}

/** Two f32 as f64. */
@inline function singlesOf(one: usize, other: usize, offset: usize): v128 {
  return f64x2.promote_low_f32x4(v128.load32_lane(other + offset, v128.load32_zero(one + offset), 1));
}
