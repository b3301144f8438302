/**
 * The mean distances of a grid's points in f32, four neighbouring positions at a time. Most points of a surface have their 19 nearest among
 * the 20, or else the 28 or up to 80, laterally nearest positions: whether it is so shows when the distances are there, by the worst of the best 19
 * being no farther than the next position lies laterally. The others are searched one by one (far-neighbours.ts, kernels/neighbour-search.ts).
 *
 * Of n candidates the n - 19 largest are left out by a chain of minima and maxima: each register keeps the larger and hands the
 * smaller on; what comes out at the end stays. Roots of that are summed in f64. Beyond 28 the best 19 are kept in order instead.
 *
 * Error: a z difference is off by u = 2^-24 at most (f32, round to nearest), its square by 3u, the table's squares of lateral differences
 * by u, their sum by 2u, the squared distance by 4u, a root by 3u, the sum of two by 4u, and the mean stored as f32 by 5u. Taking other
 * candidates for the nearest because of it changes the sum by no more. What far-neighbours.ts finds is exact but for being stored.
 */

// @ts-nocheck: AssemblyScript

import { meanOfFar } from "./far-neighbours.js";
import { f32At, i32At } from "./linear-memory.js";
import { LINES, meanDistance, OFFSET_BOUNDS, OFFSET_COLUMNS, OFFSET_COUNT, OFFSET_LINES, STRIDE, WIDTH, XS, YS, ZS } from "../kernels/neighbour-search.js";

const FEW: i32 = 20;
const MORE: i32 = 28;
const MOST: i32 = 80;
/** Less than one: the bound must hold for exact distances too. */
const CAUTION: f64 = 0.999999;
/** More than one: what is the worst of rounded squares may be more in exact ones. */
const ROUNDED: f64 = 1.000001;

/** f32 of every column of (x[column + k] - x[column])², as far as the offset table reaches: `squares` points to that of k = 0, the next is `pitch` items on. */
export function measureLanes(
  grid: i32,
  best: i32,
  distances: i32,
  squares: i32,
  pitch: i32,
  firstLine: i32,
  endLine: i32,
  work: i32,
): void {
  const width = i32At(grid, WIDTH);
  const stride = i32At(grid, STRIDE);
  const zs = i32At(grid, ZS);
  const ys = i32At(grid, YS);
  const columns = i32At(grid, OFFSET_COLUMNS);
  const lines = i32At(grid, OFFSET_LINES);
  const bounds = i32At(grid, OFFSET_BOUNDS);
  const count = i32At(grid, OFFSET_COUNT);
  // A place for the offsets of one line: byte offsets into z and squares, and the squared dy as f32.
  const plan = best + 8 * 24 + 48;
  const fewBound = f32x4.splat(<f32>(load<f64>(<usize>(bounds + 8 * FEW)) * CAUTION));
  const moreBound = f32x4.splat(<f32>(load<f64>(<usize>(bounds + 8 * MORE)) * CAUTION));
  const mostBound = f32x4.splat(<f32>load<f64>(<usize>(bounds + 8 * MOST)));
  const infinity = f32x4.splat(Infinity);
  const zero = f32x4.splat(0);
  for (let line = firstLine; line < endLine; line++) {
    for (let nth = 0; nth < MOST; nth++) {
      const dx = i32At(columns, nth);
      const dy = i32At(lines, nth);
      const difference = f32At(ys, line + dy) - f32At(ys, line);
      store<i32>(<usize>(plan + 12 * nth), (dy * stride + dx) << 2);
      store<i32>(<usize>(plan + 12 * nth), (dx * pitch) << 2, 4);
      store<f32>(<usize>(plan + 12 * nth), <f32>(difference * difference), 8);
    }
    for (let column = 0; column < width; column += 4) {
      const at = <usize>(zs + ((line * stride + column) << 2));
      const squaresAt = <usize>(squares + (column << 2));
      const out = <usize>(distances + ((line * width + column) << 2));
      const center = v128.load(at);
      const invalid = f32x4.eq(center, infinity);
      if (v128.all_true<i32>(invalid)) continue;

      let m0 = zero;
      let worst = zero;
      let low = f64x2.splat(0);
      let high = f64x2.splat(0);
      for (let nth = 0; nth < FEW; nth += 2) {
        const entry = <usize>(plan + 12 * nth);
        let d = squaredDistances(at, squaresAt, center, entry);
        let e = squaredDistances(at, squaresAt, center, entry + 12);
        const dIn = d;
        d = f32x4.pmin(m0, dIn);
        m0 = f32x4.pmax(m0, dIn);
        const eIn = e;
        e = f32x4.pmin(m0, eIn);
        m0 = f32x4.pmax(m0, eIn);
        worst = f32x4.pmax(worst, f32x4.pmax(d, e));
        const pair = f32x4.add(f32x4.sqrt(d), f32x4.sqrt(e));
        low = f64x2.add(low, f64x2.promote_low_f32x4(pair));
        high = f64x2.add(high, f64x2.promote_low_f32x4(v128.shuffle<i32>(pair, pair, 2, 3, 2, 3)));
      }
      let accepted = f32x4.le(worst, fewBound);
      if (!v128.all_true<i32>(v128.or(accepted, invalid))) {
        let m1 = zero;
        let m2 = zero;
        let m3 = zero;
        let m4 = zero;
        let m5 = zero;
        let m6 = zero;
        let m7 = zero;
        let m8 = zero;
        m0 = zero;
        worst = zero;
        low = f64x2.splat(0);
        high = f64x2.splat(0);
        for (let nth = 0; nth < MORE; nth++) {
          let d = squaredDistances(at, squaresAt, center, <usize>(plan + 12 * nth));
          let t = f32x4.pmin(m0, d);
          m0 = f32x4.pmax(m0, d);
          d = f32x4.pmin(m1, t);
          m1 = f32x4.pmax(m1, t);
          t = f32x4.pmin(m2, d);
          m2 = f32x4.pmax(m2, d);
          d = f32x4.pmin(m3, t);
          m3 = f32x4.pmax(m3, t);
          t = f32x4.pmin(m4, d);
          m4 = f32x4.pmax(m4, d);
          d = f32x4.pmin(m5, t);
          m5 = f32x4.pmax(m5, t);
          t = f32x4.pmin(m6, d);
          m6 = f32x4.pmax(m6, d);
          d = f32x4.pmin(m7, t);
          m7 = f32x4.pmax(m7, t);
          t = f32x4.pmin(m8, d);
          m8 = f32x4.pmax(m8, d);
          worst = f32x4.pmax(worst, t);
          const root = f32x4.sqrt(t);
          low = f64x2.add(low, f64x2.promote_low_f32x4(root));
          high = f64x2.add(high, f64x2.promote_low_f32x4(v128.shuffle<i32>(root, root, 2, 3, 2, 3)));
        }
        v128.store(<usize>(plan - 48), worst);
        accepted = f32x4.le(worst, moreBound);
        const isFar = v128.and(f32x4.gt(worst, mostBound), f32x4.lt(worst, infinity));
        const done = v128.or(v128.or(accepted, invalid), isFar);
        if (!v128.all_true<i32>(done)) {
          accepted = sumOfSorted(at, squaresAt, center, plan, bounds, done);
          low = v128.load(<usize>(plan - 32));
          high = v128.load(<usize>(plan - 16));
        }
      }
      low = f64x2.div(low, f64x2.splat(20));
      high = f64x2.div(high, f64x2.splat(20));
      const means = v128.shuffle<i32>(f32x4.demote_f64x2_zero(low), f32x4.demote_f64x2_zero(high), 0, 1, 4, 5);
      const lanes = min(4, width - column);
      if (lanes == 4) v128.store(out, means);
      else storeSome(out, means, lanes);
      let rest = ~i32x4.bitmask(v128.or(accepted, invalid)) & ((1 << lanes) - 1);
      while (rest != 0) {
        const lane = ctz(rest);
        rest &= rest - 1;
        const limit = load<f32>(<usize>(plan - 48 + (lane << 2)));
        let mean: f64 = -1;
        if (limit < Infinity) mean = meanOfFar(grid, <usize>best, column + lane, line, <f64>limit * ROUNDED);
        if (mean < 0) mean = meanDistance(grid, best, column + lane, line, work);
        store<f32>(out + (<usize>lane << 2), <f32>mean);
      }
    }
  }
}

@inline function squaredDistances(at: usize, squaresAt: usize, center: v128, entry: usize): v128 {
  const dz = f32x4.sub(v128.load(at + load<i32>(entry)), center);
  const lateral = f32x4.add(v128.load(squaresAt + load<i32>(entry, 4)), v128.load32_splat(entry, 8));
  return f32x4.add(f32x4.mul(dz, dz), lateral);
}

/**
 * Keeps the best 19 of each lane in order, candidate by candidate, until the next lies laterally as far as the worst of them in every lane
 * that is not done before. Leaves the sums of roots before the plan; gives the lanes whose sum is right.
 */
function sumOfSorted(at: usize, squaresAt: usize, center: v128, plan: i32, bounds: i32, done: v128): v128 {
  let b0 = f32x4.splat(Infinity);
  let b1 = f32x4.splat(Infinity);
  let b2 = f32x4.splat(Infinity);
  let b3 = f32x4.splat(Infinity);
  let b4 = f32x4.splat(Infinity);
  let b5 = f32x4.splat(Infinity);
  let b6 = f32x4.splat(Infinity);
  let b7 = f32x4.splat(Infinity);
  let b8 = f32x4.splat(Infinity);
  let b9 = f32x4.splat(Infinity);
  let b10 = f32x4.splat(Infinity);
  let b11 = f32x4.splat(Infinity);
  let b12 = f32x4.splat(Infinity);
  let b13 = f32x4.splat(Infinity);
  let b14 = f32x4.splat(Infinity);
  let b15 = f32x4.splat(Infinity);
  let b16 = f32x4.splat(Infinity);
  let b17 = f32x4.splat(Infinity);
  let b18 = f32x4.splat(Infinity);
  let accepted = f32x4.splat(0);
  for (let nth = 0; nth < MOST; ) {
    const end = nth + 4;
    for (; nth < end; nth++) {
      let d = squaredDistances(at, squaresAt, center, <usize>(plan + 12 * nth));
      let t = f32x4.pmax(b0, d);
      b0 = f32x4.pmin(b0, d);
      d = f32x4.pmax(b1, t);
      b1 = f32x4.pmin(b1, t);
      t = f32x4.pmax(b2, d);
      b2 = f32x4.pmin(b2, d);
      d = f32x4.pmax(b3, t);
      b3 = f32x4.pmin(b3, t);
      t = f32x4.pmax(b4, d);
      b4 = f32x4.pmin(b4, d);
      d = f32x4.pmax(b5, t);
      b5 = f32x4.pmin(b5, t);
      t = f32x4.pmax(b6, d);
      b6 = f32x4.pmin(b6, d);
      d = f32x4.pmax(b7, t);
      b7 = f32x4.pmin(b7, t);
      t = f32x4.pmax(b8, d);
      b8 = f32x4.pmin(b8, d);
      d = f32x4.pmax(b9, t);
      b9 = f32x4.pmin(b9, t);
      t = f32x4.pmax(b10, d);
      b10 = f32x4.pmin(b10, d);
      d = f32x4.pmax(b11, t);
      b11 = f32x4.pmin(b11, t);
      t = f32x4.pmax(b12, d);
      b12 = f32x4.pmin(b12, d);
      d = f32x4.pmax(b13, t);
      b13 = f32x4.pmin(b13, t);
      t = f32x4.pmax(b14, d);
      b14 = f32x4.pmin(b14, d);
      d = f32x4.pmax(b15, t);
      b15 = f32x4.pmin(b15, t);
      t = f32x4.pmax(b16, d);
      b16 = f32x4.pmin(b16, d);
      d = f32x4.pmax(b17, t);
      b17 = f32x4.pmin(b17, t);
      t = f32x4.pmax(b18, d);
      b18 = f32x4.pmin(b18, d);
    }
    if (nth < 20) continue;
    const bound = f32x4.splat(<f32>(load<f64>(<usize>(bounds + 8 * nth)) * CAUTION));
    accepted = f32x4.le(b18, bound);
    if (v128.all_true<i32>(v128.or(accepted, done))) break;
  }
  let low = f64x2.splat(0);
  let high = f64x2.splat(0);
  low = f64x2.add(low, lowRoots(b0));
  high = f64x2.add(high, highRoots(b0));
  low = f64x2.add(low, lowRoots(b1));
  high = f64x2.add(high, highRoots(b1));
  low = f64x2.add(low, lowRoots(b2));
  high = f64x2.add(high, highRoots(b2));
  low = f64x2.add(low, lowRoots(b3));
  high = f64x2.add(high, highRoots(b3));
  low = f64x2.add(low, lowRoots(b4));
  high = f64x2.add(high, highRoots(b4));
  low = f64x2.add(low, lowRoots(b5));
  high = f64x2.add(high, highRoots(b5));
  low = f64x2.add(low, lowRoots(b6));
  high = f64x2.add(high, highRoots(b6));
  low = f64x2.add(low, lowRoots(b7));
  high = f64x2.add(high, highRoots(b7));
  low = f64x2.add(low, lowRoots(b8));
  high = f64x2.add(high, highRoots(b8));
  low = f64x2.add(low, lowRoots(b9));
  high = f64x2.add(high, highRoots(b9));
  low = f64x2.add(low, lowRoots(b10));
  high = f64x2.add(high, highRoots(b10));
  low = f64x2.add(low, lowRoots(b11));
  high = f64x2.add(high, highRoots(b11));
  low = f64x2.add(low, lowRoots(b12));
  high = f64x2.add(high, highRoots(b12));
  low = f64x2.add(low, lowRoots(b13));
  high = f64x2.add(high, highRoots(b13));
  low = f64x2.add(low, lowRoots(b14));
  high = f64x2.add(high, highRoots(b14));
  low = f64x2.add(low, lowRoots(b15));
  high = f64x2.add(high, highRoots(b15));
  low = f64x2.add(low, lowRoots(b16));
  high = f64x2.add(high, highRoots(b16));
  low = f64x2.add(low, lowRoots(b17));
  high = f64x2.add(high, highRoots(b17));
  low = f64x2.add(low, lowRoots(b18));
  high = f64x2.add(high, highRoots(b18));
  v128.store(<usize>(plan - 32), low);
  v128.store(<usize>(plan - 16), high);
  v128.store(<usize>(plan - 48), b18);
  return accepted;
}

@inline function lowRoots(squares: v128): v128 {
  return f64x2.promote_low_f32x4(f32x4.sqrt(squares));
}

@inline function highRoots(squares: v128): v128 {
  const roots = f32x4.sqrt(squares);
  return f64x2.promote_low_f32x4(v128.shuffle<i32>(roots, roots, 2, 3, 2, 3));
}

function storeSome(out: usize, means: v128, lanes: i32): void {
  store<f32>(out, f32x4.extract_lane(means, 0));
  if (lanes > 1) store<f32>(out, f32x4.extract_lane(means, 1), 4);
  if (lanes > 2) store<f32>(out, f32x4.extract_lane(means, 2), 8);
}
