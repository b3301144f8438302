/**
 * The mean distances of a grid's points as `meanDistance` of kernels/neighbour-search.ts has them, to the last bit, two neighbouring
 * positions at a time. Most points of a surface have their 19 nearest among the 20 laterally nearest positions, of the others most among 80: whether
 * it is so shows when the distances are there, by the worst of the best 19 being no farther than the next position lies laterally.
 *
 * The bits are the same since each distance is rounded in the same steps, whichever of two points it is seen from, and since the roots are
 * summed in rising order: which of equal ones are taken, and in which order, makes no difference. Whatever is left out is as far as the worst at
 * least: a bound is rounded in the steps of a distance, each of which keeps the order.
 *
 * As in kernels/near-distances.ts the distance of two positions is computed once, and kept until the line has gone by that both lie in: a
 * band of columns after the other, so that what is kept fits into the first cache.
 */

// @ts-nocheck: AssemblyScript

import { meanOfFar } from "./far-neighbours.js";
import { f32At, f64At, i32At, setI32 } from "./linear-memory.js";
import { meansOfMore, MOST } from "./nearest-of-more.js";
import { sumOfNearest } from "./nearest-twenty.js";
import { reachOf } from "../kernels/near-distances.js";
import {
  meanDistance,
  NEIGHBOURS,
  OFFSET_BOUNDS,
  OFFSET_COLUMNS,
  OFFSET_LINES,
  PADDING,
  SCRATCH_BYTES,
  STRIDE,
  WIDTH,
  XS,
  YS,
  ZS,
} from "../kernels/neighbour-search.js";

/** Entries of the offset table that every position is measured to; each even one is followed by the opposite one. */
const NEAR: i32 = 20;
const PAIRS: i32 = 10;
/** Columns that are done at a time, and f64 for what is kept of a line of them; two are measured at once, and so one more than there may be. */
const BAND: i32 = 96;
const PITCH: i32 = BAND + 2 * PADDING + 2;
/** Within the scratch, behind that of a search of one point: where the distances of column 0 are to be found (i32), for every entry. */
const PLACES: i32 = SCRATCH_BYTES;
/** What `meansOfMore` takes: its plan, and its results. */
const PLAN: i32 = PLACES + 4 * NEAR;
const MEANS: i32 = PLAN + 16 * (MOST - NEAR);
/** What `sumOfNearest` keeps: the worst of two positions, and all. */
const KEPT: i32 = MEANS + 32;
/** Positions that wait to be paired, three at most: 19 f64 and the column. */
const WAITING_BYTES: i32 = 8 * (NEIGHBOURS + 1);
const WAITING: i32 = KEPT + 16 * (NEIGHBOURS + 1);
const SQUARES: i32 = WAITING + 3 * WAITING_BYTES;
const ROOTS: i32 = SQUARES + 8 * PAIRS * PITCH;

/** Bytes of scratch that `measureExactLanes` needs of a grid. */
export function exactLanesScratchBytes(grid: i32): i32 {
  return ROOTS + 8 * (reachOf(grid) + 1) * PAIRS * PITCH;
}

/** Exact mean distances (f64) of the points of some lines of a grid whose offset table has more than 80 entries. */
export function measureExactLanes(grid: i32, best: i32, distances: i32, firstLine: i32, endLine: i32, work: i32): void {
  const width = i32At(grid, WIDTH);
  const reach = reachOf(grid);
  for (let firstColumn = 0; firstColumn < width; firstColumn += BAND) {
    const endColumn = min(firstColumn + BAND, width);
    squareColumns(grid, best, firstColumn, endColumn);
    for (let line = firstLine - reach; line < firstLine; line++) keepRoots(grid, best, reach, firstColumn, endColumn, line);
    for (let line = firstLine; line < endLine; line++) {
      keepRoots(grid, best, reach, firstColumn, endColumn, line);
      placeRoots(grid, best, reach, firstColumn, line);
      measureBand(grid, best, distances, firstColumn, endColumn, line, work);
    }
  }
}

/** The line's place among those that are kept. */
function rootsOfLine(best: i32, reach: i32, line: i32): i32 {
  return best + ROOTS + 8 * PAIRS * PITCH * ((line + PADDING) % (reach + 1));
}

/** First column of the pair's distances that the band needs, and how many there are from it on. */
@inline function firstOf(firstColumn: i32, step: i32): i32 {
  return step > 0 ? firstColumn - step : firstColumn;
}

/** Of a column and another the squared lateral difference, for every pair of entries and every column that it is needed of. */
function squareColumns(grid: i32, best: i32, firstColumn: i32, endColumn: i32): void {
  const xs = i32At(grid, XS);
  for (let pair = 0; pair < PAIRS; pair++) {
    const step = i32At(i32At(grid, OFFSET_COLUMNS), 2 * pair);
    const squares = best + SQUARES + 8 * (pair * PITCH + PADDING - firstColumn);
    const end = step < 0 ? endColumn - step : endColumn;
    for (let column = firstOf(firstColumn, step); column < end; column += 2) {
      const at = <usize>(xs + (column << 2));
      const dx = f64x2.sub(twoSingles(at + (step << 2)), twoSingles(at));
      v128.store(<usize>(squares + (column << 3)), f64x2.mul(dx, dx));
    }
  }
}

/** The distances of a line's positions to those that lie on in it, or in the next ones. */
function keepRoots(grid: i32, best: i32, reach: i32, firstColumn: i32, endColumn: i32, line: i32): void {
  const stride = i32At(grid, STRIDE);
  const ys = i32At(grid, YS);
  const zs = i32At(grid, ZS) + ((line * stride) << 2);
  const lineRoots = rootsOfLine(best, reach, line);
  for (let pair = 0; pair < PAIRS; pair++) {
    const columnStep = i32At(i32At(grid, OFFSET_COLUMNS), 2 * pair);
    const lineStep = i32At(i32At(grid, OFFSET_LINES), 2 * pair);
    const dy = f32At(ys, line + lineStep) - f32At(ys, line);
    const squaredDy = f64x2.splat(dy * dy);
    const first = firstOf(firstColumn, columnStep);
    const within = 8 * (pair * PITCH + PADDING - firstColumn + first);
    let squares = <usize>(best + SQUARES + within);
    let roots = <usize>(lineRoots + within);
    let here = <usize>(zs + (first << 2));
    const step = <usize>((lineStep * stride + columnStep) << 2);
    const end = <usize>(zs + ((columnStep < 0 ? endColumn - columnStep : endColumn) << 2));
    for (; here < end; here += 8) {
      const dz = f64x2.sub(twoSingles(here + step), twoSingles(here));
      v128.store(roots, f64x2.sqrt(f64x2.add(f64x2.add(v128.load(squares), squaredDy), f64x2.mul(dz, dz))));
      squares += 16;
      roots += 16;
    }
  }
}

@inline function twoSingles(at: usize): v128 {
  return f64x2.promote_low_f32x4(v128.load64_zero(at));
}

/** Where the distances of column 0 are kept: to the positions that lie on from it, and of those that it lies on from. */
function placeRoots(grid: i32, best: i32, reach: i32, firstColumn: i32, line: i32): void {
  for (let pair = 0; pair < PAIRS; pair++) {
    const columnStep = i32At(i32At(grid, OFFSET_COLUMNS), 2 * pair);
    const lineStep = i32At(i32At(grid, OFFSET_LINES), 2 * pair);
    const within = 8 * (pair * PITCH + PADDING - firstColumn);
    setI32(best + PLACES, 2 * pair, rootsOfLine(best, reach, line) + within);
    setI32(best + PLACES, 2 * pair + 1, rootsOfLine(best, reach, line - lineStep) + within - 8 * columnStep);
  }
}

/** What `meansOfMore` takes of a line. */
function planLine(grid: i32, plan: usize, line: i32): void {
  const stride = i32At(grid, STRIDE);
  const columns = i32At(grid, OFFSET_COLUMNS);
  const lines = i32At(grid, OFFSET_LINES);
  const ys = i32At(grid, YS);
  const y = f32At(ys, line);
  for (let nth = NEAR; nth < MOST; nth++) {
    const columnStep = i32At(columns, nth);
    const lineStep = i32At(lines, nth);
    const dy = f32At(ys, line + lineStep) - y;
    store<i32>(plan, (lineStep * stride + columnStep) << 2);
    store<i32>(plan, columnStep << 2, 4);
    store<f64>(plan, dy * dy, 8);
    plan += 16;
  }
}

function measureBand(grid: i32, best: i32, distances: i32, firstColumn: i32, endColumn: i32, line: i32, work: i32): void {
  const zs = i32At(grid, ZS) + ((line * i32At(grid, STRIDE)) << 2);
  const out = distances + ((line * i32At(grid, WIDTH)) << 3);
  const limit = f64x2.splat(sqrt<f64>(f64At(i32At(grid, OFFSET_BOUNDS), NEAR)));
  const infinity = f32x4.splat(Infinity);
  const kept = <usize>(best + KEPT);
  let isPlanned = false;
  let waiting = 0;
  for (let column = firstColumn; column < endColumn; column += 2) {
    let rest = i32x4.bitmask(f32x4.ne(v128.load64_zero(<usize>(zs + (column << 2))), infinity)) & 3;
    if (column + 1 == endColumn) rest &= 1;
    if (rest == 0) continue;
    const sums = sumOfNearest(<usize>(best + PLACES), <usize>(column << 3), limit, kept);
    const means = f64x2.div(sums, f64x2.splat(NEIGHBOURS + 1));
    const at = <usize>(out + (column << 3));
    // Beyond the line's last column may lie what another thread measures.
    if (column + 1 < endColumn) v128.store(at, means);
    else v128.store64_lane(at, means, 0);
    rest &= ~i64x2.bitmask(f64x2.le(v128.load(kept), limit));
    while (rest != 0) {
      const lane = ctz(rest);
      rest &= rest - 1;
      const place = <usize>(best + WAITING + waiting * WAITING_BYTES);
      for (let nth: usize = 0; nth < <usize>NEIGHBOURS; nth++) {
        store<f64>(place + (nth << 3), load<f64>(kept + 16 + (nth << 4) + (<usize>lane << 3)));
      }
      store<i32>(place, column + lane, 8 * NEIGHBOURS);
      waiting++;
    }
    if (waiting < 2) continue;
    if (!isPlanned) planLine(grid, <usize>(best + PLAN), line);
    isPlanned = true;
    waiting -= 2;
    measureTwo(grid, best, out, line, waiting, waiting + 1, work);
  }
  if (waiting == 0) return;
  if (!isPlanned) planLine(grid, <usize>(best + PLAN), line);
  measureTwo(grid, best, out, line, 0, 0, work);
}

/** Two positions that wait. */
function measureTwo(grid: i32, best: i32, out: i32, line: i32, one: i32, other: i32, work: i32): void {
  const onePlace = <usize>(best + WAITING + one * WAITING_BYTES);
  const otherPlace = <usize>(best + WAITING + other * WAITING_BYTES);
  const oneColumn = load<i32>(onePlace, 8 * NEIGHBOURS);
  const otherColumn = load<i32>(otherPlace, 8 * NEIGHBOURS);
  const means = <usize>(best + MEANS);
  const right = meansOfMore(grid, <usize>(best + PLAN), line, oneColumn, otherColumn, onePlace, otherPlace, means);
  let mean = load<f64>(means);
  if ((right & 1) == 0) mean = meanOfOne(grid, best, oneColumn, line, load<f64>(means, 16), work);
  store<f64>(<usize>(out + (oneColumn << 3)), mean);
  if (one == other) return;
  mean = load<f64>(means, 8);
  if ((right & 2) == 0) mean = meanOfOne(grid, best, otherColumn, line, load<f64>(means, 24), work);
  store<f64>(<usize>(out + (otherColumn << 3)), mean);
}

/** @param worst within which at least 19 other points lie */
function meanOfOne(grid: i32, best: i32, column: i32, line: i32, worst: f64, work: i32): f64 {
  if (worst < Infinity) {
    const mean = meanOfFar(grid, <usize>best, column, line, worst * worst * 1.000001);
    if (mean >= 0) return mean;
  }
  return meanDistance(grid, best, column, line, work);
}
