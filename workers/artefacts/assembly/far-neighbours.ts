/**
 * The mean distance of a point that lies far off its surroundings, as `meanDistance` has it, to the last bit: what the lanes have found of it
 * bounds the distance of its 19th neighbour, and so tiles that hold nothing within that bound are passed over, and of the others all points
 * are looked at, four at a time. That is done in f32, which passes over what is farther by more than its rounding; the others' distances are
 * computed in f64.
 */

// @ts-nocheck: AssemblyScript

import { f32At, i32At } from "./linear-memory.js";
import { STRIDE, TILE_MAXIMA, TILE_MINIMA, TILES_HIGH, TILES_WIDE, XS, YS, ZS } from "../kernels/neighbour-search.js";

/** Within more tiles the search is left to the one that counts its work. */
const MOST_TILES: i32 = 512;
/** More than the rounding of f32 makes of a squared distance or a bound: 5 * 2^-24. */
const CAUTION: f64 = 1.000001;

/**
 * @param scratch 48 bytes
 * @param limit more than the squared distance of the 19th of the nearest other points
 * @returns negative where there is too much to be looked at
 */
export function meanOfFar(grid: i32, scratch: usize, column: i32, row: i32, limit: f64): f64 {
  const tilesWide = i32At(grid, TILES_WIDE);
  const tilesHigh = i32At(grid, TILES_HIGH);
  const xs = i32At(grid, XS);
  const ys = i32At(grid, YS);
  const zs = i32At(grid, ZS);
  const stride = i32At(grid, STRIDE);
  const x = f32At(xs, column);
  const y = f32At(ys, row);
  const ownColumn = column >> 3;
  const ownLine = row >> 3;
  let left = ownColumn;
  let right = ownColumn;
  let top = ownLine;
  let bottom = ownLine;
  while (left > 0 && ownColumn - left < MOST_TILES && squared(x - f32At(xs, (left << 3) - 1)) < limit) left--;
  while (right + 1 < tilesWide && right - ownColumn < MOST_TILES && squared(f32At(xs, (right + 1) << 3) - x) < limit) right++;
  while (top > 0 && ownLine - top < MOST_TILES && squared(y - f32At(ys, (top << 3) - 1)) < limit) top--;
  while (bottom + 1 < tilesHigh && bottom - ownLine < MOST_TILES && squared(f32At(ys, (bottom + 1) << 3) - y) < limit) bottom++;
  if ((right - left + 1) * (bottom - top + 1) > MOST_TILES) return -1;

  const center = v128.load32_splat(<usize>(zs + ((row * stride + column) << 2)));
  const centerX = f32x4.splat(<f32>x);
  const zero = f32x4.splat(0);
  const z = f32At(zs, row * stride + column);
  // The best 19 squared distances, rising; of the last two the second does not count.
  let b0 = f64x2.splat(limit);
  let b1 = b0;
  let b2 = b0;
  let b3 = b0;
  let b4 = b0;
  let b5 = b0;
  let b6 = b0;
  let b7 = b0;
  let b8 = b0;
  let b9 = b0;
  const none = f64x2.splat(0);
  let worst = limit;
  let reach = f32x4.splat(<f32>(worst * CAUTION));
  for (let nth = top - 1; nth <= bottom; nth++) {
    // The point's own tiles first: the nearest are there mostly.
    const line = nth < top ? ownLine : nth;
    if (nth == ownLine) continue;
    let gapY: f64 = 0;
    if (line < ownLine) gapY = squared(y - f32At(ys, (line << 3) + 7));
    else if (line > ownLine) gapY = squared(f32At(ys, line << 3) - y);
    const lowest = i32At(grid, TILE_MINIMA) + ((line * tilesWide) << 2);
    const highest = i32At(grid, TILE_MAXIMA) + ((line * tilesWide) << 2);
    for (let tile = left; tile <= right; tile += 4) {
      const below = f32x4.sub(v128.load(<usize>(lowest + (tile << 2))), center);
      const above = f32x4.sub(center, v128.load(<usize>(highest + (tile << 2))));
      const gap = f32x4.pmax(f32x4.pmax(below, above), zero);
      const least = f32x4.add(f32x4.mul(gap, gap), f32x4.splat(<f32>gapY));
      v128.store(scratch, least);
      let tiles = i32x4.bitmask(f32x4.lt(least, reach));
      while (tiles != 0) {
        const lane = ctz(tiles);
        tiles &= tiles - 1;
        const at = tile + lane;
        if (at > right) break;
        let gapX: f64 = 0;
        if (at < ownColumn) gapX = squared(x - f32At(xs, (at << 3) + 7));
        else if (at > ownColumn) gapX = squared(f32At(xs, at << 3) - x);
        if (<f64>load<f32>(scratch + (<usize>lane << 2)) + gapX >= worst * CAUTION) continue;
        const first = at << 3;
        let dx = f32x4.sub(v128.load(<usize>(xs + (first << 2))), centerX);
        const squaredLeft = f32x4.mul(dx, dx);
        dx = f32x4.sub(v128.load(<usize>(xs + (first << 2)), 16), centerX);
        const squaredRight = f32x4.mul(dx, dx);
        let points = <usize>(zs + (((line << 3) * stride + first) << 2));
        for (let pointLine = line << 3; pointLine < (line << 3) + 8; pointLine++) {
          const squaredDy = f32x4.splat(<f32>squared(f32At(ys, pointLine) - y));
          let dz = f32x4.sub(v128.load(points), center);
          let d = f32x4.add(f32x4.mul(dz, dz), f32x4.add(squaredLeft, squaredDy));
          dz = f32x4.sub(v128.load(points, 16), center);
          const e = f32x4.add(f32x4.mul(dz, dz), f32x4.add(squaredRight, squaredDy));
          points += <usize>(stride << 2);
          let hits = i32x4.bitmask(f32x4.lt(d, reach)) | (i32x4.bitmask(f32x4.lt(e, reach)) << 4);
          if (pointLine == row && at == ownColumn) hits &= ~(1 << (column & 7));
          if (hits == 0) continue;
          const exactDy = f32At(ys, pointLine) - y;
          const lineZs = zs + ((pointLine * stride) << 2);
          while (hits != 0) {
            const other = first + ctz(hits);
            hits &= hits - 1;
            const exactDx = f32At(xs, other) - x;
            const exactDz = f32At(lineZs, other) - z;
            const distance = f64x2.splat(exactDx * exactDx + exactDy * exactDy + exactDz * exactDz);
            b9 = f64x2.pmin(b9, f64x2.pmax(v128.shuffle<i64>(b8, b9, 1, 2), distance));
            b8 = f64x2.pmin(b8, f64x2.pmax(v128.shuffle<i64>(b7, b8, 1, 2), distance));
            b7 = f64x2.pmin(b7, f64x2.pmax(v128.shuffle<i64>(b6, b7, 1, 2), distance));
            b6 = f64x2.pmin(b6, f64x2.pmax(v128.shuffle<i64>(b5, b6, 1, 2), distance));
            b5 = f64x2.pmin(b5, f64x2.pmax(v128.shuffle<i64>(b4, b5, 1, 2), distance));
            b4 = f64x2.pmin(b4, f64x2.pmax(v128.shuffle<i64>(b3, b4, 1, 2), distance));
            b3 = f64x2.pmin(b3, f64x2.pmax(v128.shuffle<i64>(b2, b3, 1, 2), distance));
            b2 = f64x2.pmin(b2, f64x2.pmax(v128.shuffle<i64>(b1, b2, 1, 2), distance));
            b1 = f64x2.pmin(b1, f64x2.pmax(v128.shuffle<i64>(b0, b1, 1, 2), distance));
            b0 = f64x2.pmin(b0, f64x2.pmax(v128.shuffle<i64>(none, b0, 1, 2), distance));
          }
          worst = f64x2.extract_lane(b9, 0);
          reach = f32x4.splat(<f32>(worst * CAUTION));
        }
      }
    }
  }
  let sum: f64 = 0;
  sum = sumWith(sum, b0);
  sum = sumWith(sum, b1);
  sum = sumWith(sum, b2);
  sum = sumWith(sum, b3);
  sum = sumWith(sum, b4);
  sum = sumWith(sum, b5);
  sum = sumWith(sum, b6);
  sum = sumWith(sum, b7);
  sum = sumWith(sum, b8);
  return (sum + sqrt<f64>(worst)) / 20;
}

@inline function squared(value: f64): f64 {
  return value * value;
}

/** One after the other: the order of a sum is part of its bits. */
@inline function sumWith(sum: f64, squares: v128): f64 {
  const roots = f64x2.sqrt(squares);
  return sum + f64x2.extract_lane(roots, 0) + f64x2.extract_lane(roots, 1);
}
