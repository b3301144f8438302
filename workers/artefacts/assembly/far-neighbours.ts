/**
 * The mean distance of a point that lies far off its surroundings, in f32: what distance-lanes.ts has found of it bounds the distance of its
 * 19th neighbour, and so tiles that hold nothing within that bound are passed over, and of the others all points are looked at, four at a time.
 *
 * Error: as in distance-lanes.ts, but for the squares of lateral differences, which are off by 3u here: a squared distance by 5u, a root by
 * 3.5u, the mean stored as f32 by 5u. Of points as far as the bound itself each stands for another.
 */

// @ts-nocheck: AssemblyScript

import { f32At, i32At } from "./linear-memory.js";
import { STRIDE, TILE_MAXIMA, TILE_MINIMA, TILES_HIGH, TILES_WIDE, XS, YS, ZS } from "../kernels/neighbour-search.js";

/** Within more tiles the search is left to the one that counts its work. */
const MOST_TILES: i32 = 512;
/** More than rounding makes a bound pass over. */
const CAUTION: f32 = 0.999999;

/**
 * @param scratch 48 bytes
 * @param limit a squared distance within which at least 19 other points lie
 * @returns negative where there is too much to be looked at
 */
export function meanOfFar(grid: i32, scratch: usize, column: i32, row: i32, limit: f32): f64 {
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
  // The best 19 squared distances, rising; of the last four the fourth does not count.
  let worst = f32x4.splat(limit);
  let b0 = worst;
  let b1 = worst;
  let b2 = worst;
  let b3 = worst;
  let b4 = worst;
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
      let tiles = i32x4.bitmask(f32x4.lt(f32x4.mul(least, f32x4.splat(CAUTION)), worst));
      while (tiles != 0) {
        const lane = ctz(tiles);
        tiles &= tiles - 1;
        const at = tile + lane;
        if (at > right) break;
        let gapX: f64 = 0;
        if (at < ownColumn) gapX = squared(x - f32At(xs, (at << 3) + 7));
        else if (at > ownColumn) gapX = squared(f32At(xs, at << 3) - x);
        const bound = load<f32>(scratch + (<usize>lane << 2)) + <f32>gapX;
        if (bound * CAUTION >= f32x4.extract_lane(b4, 2)) continue;
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
          let hits = i32x4.bitmask(f32x4.lt(d, worst)) | (i32x4.bitmask(f32x4.lt(e, worst)) << 4);
          if (hits == 0) continue;
          if (pointLine == row && at == ownColumn) hits &= ~(1 << (column & 7));
          v128.store(scratch, d, 16);
          v128.store(scratch, e, 32);
          while (hits != 0) {
            const distance = v128.load32_splat(scratch + (<usize>ctz(hits) << 2), 16);
            hits &= hits - 1;
            b4 = f32x4.pmin(b4, f32x4.pmax(v128.shuffle<i32>(b3, b4, 3, 4, 5, 6), distance));
            b3 = f32x4.pmin(b3, f32x4.pmax(v128.shuffle<i32>(b2, b3, 3, 4, 5, 6), distance));
            b2 = f32x4.pmin(b2, f32x4.pmax(v128.shuffle<i32>(b1, b2, 3, 4, 5, 6), distance));
            b1 = f32x4.pmin(b1, f32x4.pmax(v128.shuffle<i32>(b0, b1, 3, 4, 5, 6), distance));
            b0 = f32x4.pmin(b0, f32x4.pmax(v128.shuffle<i32>(zero, b0, 3, 4, 5, 6), distance));
          }
          worst = v128.shuffle<i32>(b4, b4, 2, 2, 2, 2);
        }
      }
    }
  }
  let sums = f64x2.add(rootsOf(b0), rootsOf(b1));
  sums = f64x2.add(sums, f64x2.add(rootsOf(b2), rootsOf(b3)));
  sums = f64x2.add(sums, rootsOf(f32x4.replace_lane(b4, 3, 0)));
  return (f64x2.extract_lane(sums, 0) + f64x2.extract_lane(sums, 1)) / 20;
}

@inline function squared(value: f64): f64 {
  return value * value;
}

/** Of four squares the roots, pairs of them added up. */
@inline function rootsOf(squares: v128): v128 {
  const roots = f32x4.sqrt(squares);
  return f64x2.add(f64x2.promote_low_f32x4(roots), f64x2.promote_low_f32x4(v128.shuffle<i32>(roots, roots, 2, 3, 2, 3)));
}
