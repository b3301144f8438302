/**
 * `approximateSums` of kernels/outlier-statistics.ts, four f32 distances at a time. It adds up in another order, which the bound of the sums'
 * rounding errors allows for (outlier-filter.ts): what they leave in doubt is decided exactly.
 */

// @ts-nocheck: AssemblyScript

import { f32At, f64At, i32At, setF64 } from "./linear-memory.js";
import { STRIDE, WIDTH, ZS } from "../kernels/neighbour-search.js";
import { COUNT, COUNTED, DEVIATION, MEAN, OPEN, SPREAD } from "../kernels/outlier-statistics.js";

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
  const zs = i32At(grid, ZS);
  const infinity = f32x4.splat(Infinity);
  const zero = f32x4.splat(0);
  const shift = f64x2.splat(around);
  let sums = f64x2.splat(0);
  let squares = f64x2.splat(0);
  let spreads = f64x2.splat(0);
  let count = 0;
  let open = 0;
  let positive = 0;
  let sum: f64 = 0;
  let square: f64 = 0;
  let spread: f64 = 0;
  for (let line = firstLine; line < endLine; line++) {
    let column = 0;
    if (itemBytes == 4) {
      for (; column + 4 <= width; column += 4) {
        const valid = f32x4.ne(v128.load(<usize>(zs + ((line * stride + column) << 2))), infinity);
        const d = v128.load(<usize>(distances + ((line * width + column) << 2)));
        const counted = v128.and(valid, f32x4.gt(d, zero));
        count += popcnt(i32x4.bitmask(valid));
        positive += popcnt(i32x4.bitmask(counted));
        open += popcnt(i32x4.bitmask(v128.and(valid, f32x4.lt(d, zero))));
        const kept = v128.and(d, counted);
        const low = f64x2.promote_low_f32x4(kept);
        const high = f64x2.promote_low_f32x4(v128.shuffle<i32>(kept, kept, 2, 3, 2, 3));
        sums = f64x2.add(sums, f64x2.add(low, high));
        const fromLow = v128.and(f64x2.sub(low, shift), i64x2.extend_low_i32x4_s(counted));
        const fromHigh = v128.and(f64x2.sub(high, shift), i64x2.extend_high_i32x4_s(counted));
        squares = f64x2.add(squares, f64x2.add(f64x2.mul(fromLow, fromLow), f64x2.mul(fromHigh, fromHigh)));
        spreads = f64x2.add(spreads, f64x2.add(f64x2.mul(low, f64x2.abs(fromLow)), f64x2.mul(high, f64x2.abs(fromHigh))));
      }
    }
    for (; column < width; column++) {
      if (f32At(zs, line * stride + column) == Infinity) continue;
      const at = line * width + column;
      const distance = itemBytes == 4 ? f32At(distances, at) : f64At(distances, at);
      count++;
      if (distance > 0) {
        positive++;
        sum += distance;
        square += (distance - around) * (distance - around);
        spread += distance * Math.abs(distance - around);
      } else if (distance < 0) {
        open++;
      }
    }
  }
  setF64(statistics, COUNT, <f64>count);
  setF64(statistics, MEAN, sum + f64x2.extract_lane(sums, 0) + f64x2.extract_lane(sums, 1));
  setF64(statistics, DEVIATION, square + f64x2.extract_lane(squares, 0) + f64x2.extract_lane(squares, 1));
  setF64(statistics, SPREAD, spread + f64x2.extract_lane(spreads, 0) + f64x2.extract_lane(spreads, 1));
  setF64(statistics, OPEN, <f64>open);
  setF64(statistics, COUNTED, <f64>positive);
}
