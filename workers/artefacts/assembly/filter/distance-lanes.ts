/**
 * The mean distances of a grid's points in f32, four neighbouring positions at a time.
 *
 * On a surface, most points have their 19 nearest neighbours among the 20, or else the 28 or up to 80, laterally nearest
 * positions. The distances show whether that holds: the worst of the best 19 must be no farther than the next position
 * lies laterally. Points for which it does not hold are searched one by one (neighbour-search.ts).
 *
 * A chain of minima and maxima leaves out the n - 19 largest of n candidates. Each register keeps the larger value and
 * hands the smaller one on. The values that come out at the end are the nearest, and their roots are summed in f64.
 * Beyond 28 candidates, the best 19 are kept in order instead.
 *
 * Error, with u = 2^-24 (f32, round to nearest), at most: a z difference is off by u, and its square by 3u. The table's
 * squares of lateral differences are off by u, and their sum by 2u. The squared distance is off by 4u, a root by 3u,
 * the sum of two roots by 4u, and the mean stored as f32 by 5u. This error may also make other candidates the nearest;
 * that changes the sum by no more. Points that are searched one by one are exact until they are stored.
 */
import { f32At, f64At, i32At, storeLanes } from "../linear-memory";
import { Grid, lineOf } from "./grid";
import { allowWork, isWorkSpent, meanDistance, NEIGHBOURS, squared } from "./neighbour-search";

const FEW: i32 = 20;
const MORE: i32 = 28;
const MOST: i32 = 80;
/** A factor below one: the bound must hold for exact distances too. */
const CAUTION: f64 = 0.999999;
const ROUNDED: f64 = 1.000001;
/**
 * Offsets within the scratch. These values come after the best of a search of one point: the sums of the roots of lanes
 * 0 and 1, and of 2 and 3 (f64); the worst squared distance of the best 19 (f32); these 19; and the plan.
 */
const LOW: usize = 160;
const HIGH: usize = 176;
const WORST: usize = 192;
const BEST: usize = 208;
const PLAN: usize = 512;
/** An entry of the offset table has byte offsets into z and into squares (i32), and the squared dy (f32). */
const ENTRY_BYTES: i32 = 12;

/**
 * Measures all points of a grid whose offset table has more than 80 entries.
 *
 * @param scratch 2 KiB
 * @param distances f32, by line x width + column; positions without a point get any value
 * @param work that the search through tiles may cost
 * @returns whether that was enough
 */
export function measureLanes(grid: Grid, scratch: usize, distances: usize, work: f64): bool {
  allowWork(work);
  const infinity = f32x4.splat(Infinity);
  for (let line = 0; line < grid.lines; line++) {
    planLine(grid, scratch + PLAN, line);
    const points = lineOf(grid, line);
    const out = distances + ((line * grid.width) << 2);
    for (let column = 0; column < grid.width; column += 4) {
      const heights = v128.load(points + (column << 2));
      if (v128.all_true<i32>(f32x4.eq(heights, infinity))) continue;
      const right = measureFour(grid, scratch, points, column, out);
      let rest = i32x4.bitmask(f32x4.ne(heights, infinity)) & ~right;
      if (grid.width - column < 4) rest &= (1 << (grid.width - column)) - 1;
      for (; rest !== 0; rest &= rest - 1) {
        const one = column + ctz(rest);
        store<f32>(out + (one << 2), <f32>meanDistance(grid, scratch, one, line, limitOf(scratch, one & 3)));
      }
      if (isWorkSpent()) return false;
    }
  }
  return true;
}

function planLine(grid: Grid, plan: usize, line: i32): void {
  for (let nth = 0; nth < MOST; nth++) {
    const dx = i32At(grid.offsetColumns, nth);
    const entry = plan + nth * ENTRY_BYTES;
    store<i32>(entry, i32At(grid.offsetSteps, nth) << 2);
    store<i32>(entry, (dx * grid.squaresPitch) << 2, 4);
    store<f32>(entry, <f32>squared(f32At(grid.ys, line + i32At(grid.offsetLines, nth)) - f32At(grid.ys, line)), 8);
  }
}

/**
 * Stores the means of those of four positions that are in the line.
 *
 * @returns a bit for each that is right, if it is a point
 */
function measureFour(grid: Grid, scratch: usize, lineAt: usize, column: i32, out: usize): i32 {
  const at = lineAt + (column << 2);
  const squares = grid.squares + (column << 2);
  const center = v128.load(at);
  let largest = f32x4.splat(0);
  let worst = largest;
  let low = f64x2.splat(0);
  let high = low;
  for (let nth = 0; nth < FEW; nth += 2) {
    const entry = scratch + PLAN + nth * ENTRY_BYTES;
    const first = squaredDistances(at, squares, center, entry);
    const second = squaredDistances(at, squares, center, entry + ENTRY_BYTES);
    const one = f32x4.pmin(largest, first);
    largest = f32x4.pmax(largest, first);
    const other = f32x4.pmin(largest, second);
    largest = f32x4.pmax(largest, second);
    worst = f32x4.pmax(worst, f32x4.pmax(one, other));
    const roots = f32x4.add(f32x4.sqrt(one), f32x4.sqrt(other));
    low = f64x2.add(low, f64x2.promote_low_f32x4(roots));
    high = f64x2.add(high, f64x2.promote_low_f32x4(v128.shuffle<i32>(roots, roots, 2, 3, 2, 3)));
  }
  let right = i32x4.bitmask(f32x4.le(worst, boundAt(grid, FEW)));
  const points = i32x4.bitmask(f32x4.ne(center, f32x4.splat(Infinity)));
  if ((points & ~right) !== 0) {
    right = measureMore(grid, scratch, at, squares, center, points);
    low = v128.load(scratch, LOW);
    high = v128.load(scratch, HIGH);
  }
  const lowMeans = f32x4.demote_f64x2_zero(f64x2.div(low, f64x2.splat(NEIGHBOURS + 1)));
  const highMeans = f32x4.demote_f64x2_zero(f64x2.div(high, f64x2.splat(NEIGHBOURS + 1)));
  storeLanes(out + (column << 2), v128.shuffle<i32>(lowMeans, highMeans, 0, 1, 4, 5), grid.width - column);
  return right;
}

/** Does the same as `measureFour` with more entries. It leaves the sums and the worst of the best in the scratch. */
function measureMore(grid: Grid, scratch: usize, at: usize, squares: usize, center: v128, points: i32): i32 {
  const worst = sumOfMore(scratch, at, squares, center);
  const right = i32x4.bitmask(f32x4.le(worst, boundAt(grid, MORE)));
  // A point is never right if its worst is farther than any entry.
  const isFar = v128.and(f32x4.gt(worst, boundAt(grid, MOST)), f32x4.lt(worst, f32x4.splat(Infinity)));
  const near = points & ~i32x4.bitmask(isFar);
  return (near & ~right) === 0 ? right : sumOfMost(grid, scratch, at, squares, center, near);
}

/** A lane's worst squared distance of the best 19, made a little larger: rounding may have made it too small. */
function limitOf(scratch: usize, lane: i32): f64 {
  return <f64>load<f32>(scratch + (lane << 2), WORST) * ROUNDED;
}

/** A lower bound, in all lanes, of the squared distance to anything outside the first `entries` positions. */
function boundAt(grid: Grid, entries: i32): v128 {
  return f32x4.splat(<f32>(f64At(grid.offsetBounds, entries) * CAUTION));
}

function squaredDistances(at: usize, squares: usize, center: v128, entry: usize): v128 {
  const dz = f32x4.sub(v128.load(at + load<i32>(entry)), center);
  const lateral = f32x4.add(v128.load(squares + load<i32>(entry, 4)), v128.load32_splat(entry, 8));
  return f32x4.add(f32x4.mul(dz, dz), lateral);
}

/** Sums over 28 entries. Gives the worst of the best. */
function sumOfMore(scratch: usize, at: usize, squares: usize, center: v128): v128 {
  const zero = f32x4.splat(0);
  let m0 = zero;
  let m1 = zero;
  let m2 = zero;
  let m3 = zero;
  let m4 = zero;
  let m5 = zero;
  let m6 = zero;
  let m7 = zero;
  let m8 = zero;
  let worst = zero;
  let low = f64x2.splat(0);
  let high = low;
  for (let nth = 0; nth < MORE; nth++) {
    let d = squaredDistances(at, squares, center, scratch + PLAN + nth * ENTRY_BYTES);
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
    const roots = f32x4.sqrt(t);
    low = f64x2.add(low, f64x2.promote_low_f32x4(roots));
    high = f64x2.add(high, f64x2.promote_low_f32x4(v128.shuffle<i32>(roots, roots, 2, 3, 2, 3)));
  }
  v128.store(scratch, low, LOW);
  v128.store(scratch, high, HIGH);
  v128.store(scratch, worst, WORST);
  return worst;
}

/** Sums over more entries until all lanes of `near` are right. Gives a bit for each lane that is right. */
function sumOfMost(grid: Grid, scratch: usize, at: usize, squares: usize, center: v128, near: i32): i32 {
  const infinity = f32x4.splat(Infinity);
  const best = scratch + BEST;
  for (let nth = 0; nth < NEIGHBOURS; nth++) v128.store(best + (nth << 4), infinity);
  let right = 0;
  for (let nth = 0; nth < MOST; ) {
    for (const end = nth + 4; nth < end; nth++) {
      insertFour(best, squaredDistances(at, squares, center, scratch + PLAN + nth * ENTRY_BYTES));
    }
    if (nth <= MORE) continue;
    const worst = v128.load(best, 16 * (NEIGHBOURS - 1));
    right = i32x4.bitmask(f32x4.le(worst, boundAt(grid, nth)));
    if ((near & ~right) === 0) break;
  }
  let low = f64x2.splat(0);
  let high = low;
  for (let nth = 0; nth < NEIGHBOURS; nth++) {
    const roots = f32x4.sqrt(v128.load(best + (nth << 4)));
    low = f64x2.add(low, f64x2.promote_low_f32x4(roots));
    high = f64x2.add(high, f64x2.promote_low_f32x4(v128.shuffle<i32>(roots, roots, 2, 3, 2, 3)));
  }
  v128.store(scratch, low, LOW);
  v128.store(scratch, high, HIGH);
  v128.store(scratch, v128.load(best, 16 * (NEIGHBOURS - 1)), WORST);
  return right;
}

/** Keeps the 19 smallest values of each lane, in rising order. */
function insertFour(best: usize, distances: v128): void {
  if (!v128.any_true(f32x4.lt(distances, v128.load(best, 16 * (NEIGHBOURS - 1))))) return;
  let rest = distances;
  for (let at = best; at < best + 16 * NEIGHBOURS; at += 16) {
    const kept = v128.load(at);
    v128.store(at, f32x4.pmin(kept, rest));
    rest = f32x4.pmax(kept, rest);
  }
}
