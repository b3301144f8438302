/**
 * Sums over the mean distances of all points (f32), and of squares around a given mean, four at a time.
 *
 * They are added in another order than the sums of the exact threshold. filter/threshold-bounds.ts allows for that in
 * its bound of rounding errors.
 */
import { f32At, setF64 } from "../linear-memory";
import { Grid, lineOf } from "./grid";
import { squared } from "./neighbour-search";

/** @param sums gets five f64: number of points, number of points with d > 0, Σ d, Σ (d - around)², Σ d |d - around| */
export function sumDistances(grid: Grid, distances: usize, around: f64, sums: usize): void {
  const infinity = f32x4.splat(Infinity);
  const zero = f32x4.splat(0);
  const shift = f64x2.splat(around);
  let totals = f64x2.splat(0);
  let squares = f64x2.splat(0);
  let spreads = f64x2.splat(0);
  let points = 0;
  let positive = 0;
  // These sum the positions after the last whole four of a line.
  let total: f64 = 0;
  let square: f64 = 0;
  let spread: f64 = 0;
  for (let line = 0; line < grid.lines; line++) {
    const zs = lineOf(grid, line);
    const ds = distances + ((line * grid.width) << 2);
    let column = 0;
    for (; column + 4 <= grid.width; column += 4) {
      const d = v128.load(ds + (column << 2));
      const isPoint = f32x4.ne(v128.load(zs + (column << 2)), infinity);
      const isPositive = v128.and(isPoint, f32x4.gt(d, zero));
      points += popcnt(i32x4.bitmask(isPoint));
      positive += popcnt(i32x4.bitmask(isPositive));
      const kept = v128.and(d, isPositive);
      const low = f64x2.promote_low_f32x4(kept);
      const high = f64x2.promote_low_f32x4(v128.shuffle<i32>(kept, kept, 2, 3, 2, 3));
      const fromLow = v128.and(f64x2.sub(low, shift), i64x2.extend_low_i32x4_s(isPositive));
      const fromHigh = v128.and(f64x2.sub(high, shift), i64x2.extend_high_i32x4_s(isPositive));
      totals = f64x2.add(totals, f64x2.add(low, high));
      squares = f64x2.add(squares, f64x2.add(f64x2.mul(fromLow, fromLow), f64x2.mul(fromHigh, fromHigh)));
      spreads = f64x2.add(spreads, f64x2.mul(low, f64x2.abs(fromLow)));
      spreads = f64x2.add(spreads, f64x2.mul(high, f64x2.abs(fromHigh)));
    }
    for (; column < grid.width; column++) {
      if (f32At(zs, column) === Infinity) continue;
      points++;
      const distance = f32At(ds, column);
      if (!(distance > 0)) continue;
      positive++;
      total += distance;
      square += squared(distance - around);
      spread += distance * abs(distance - around);
    }
  }
  setF64(sums, 0, points);
  setF64(sums, 1, positive);
  setF64(sums, 2, total + f64x2.extract_lane(totals, 0) + f64x2.extract_lane(totals, 1));
  setF64(sums, 3, square + f64x2.extract_lane(squares, 0) + f64x2.extract_lane(squares, 1));
  setF64(sums, 4, spread + f64x2.extract_lane(spreads, 0) + f64x2.extract_lane(spreads, 1));
}
