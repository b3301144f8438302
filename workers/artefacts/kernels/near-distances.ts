/**
 * The mean distances of a grid's points in f64, right but for the order of their sums, and fast where a surface is smooth: there nearly every
 * point has its 19 nearest among the 20 laterally nearest positions. It is so if all of them, or all but one, are no farther than the
 * next position lies laterally. The others are searched one by one.
 *
 * Two neighbours are as far from one as from the other, so each distance is computed once, line by line, and kept until the line has gone by that
 * both lie in. A band of columns after the other, so that the distances that are kept fit into the first cache.
 */
import { type f64, f64At, type i32, i32At, setI32, viewDoubles, viewSingles, viewWords } from "./linear-memory.js";
import {
  meanDistance,
  NEIGHBOURS,
  OFFSET_BOUNDS,
  OFFSET_COLUMNS,
  OFFSET_COUNT,
  OFFSET_LINES,
  PADDING,
  SCRATCH_BYTES,
  STRIDE,
  UNRESOLVED,
  WIDTH,
  XS,
  YS,
  ZS,
} from "./neighbour-search.js";
import { MOST, meanOfWidening, WIDENING_BYTES } from "./widening-distances.js";

/** Entries of the offset table that are looked at: one more than count. Each is followed by the opposite one, or follows it. */
const NEAR: i32 = NEIGHBOURS + 1;
const PAIRS: i32 = NEAR >> 1;
/** Pairs of all that a widening look may take. */
const WIDE_PAIRS: i32 = MOST >> 1;
/** Columns that are done at a time, and f64 for what is kept of a line of them. */
const BAND: i32 = 96;
const PITCH: i32 = BAND + 2 * PADDING;
/** Where the kept distances of a line of the band, and of the one that lies another, are to be found: (i32) for every entry. */
const PLACES: i32 = SCRATCH_BYTES;
const SQUARES: i32 = PLACES + 4 * NEAR;
/** Of the line, for every pair of entries: the squared lateral difference to the one that lies on, and to the opposite one (f64). */
const LINE_SQUARES: i32 = SQUARES + 8 * WIDE_PAIRS * PITCH;
const WIDENING: i32 = LINE_SQUARES + 16 * WIDE_PAIRS;
const ROOTS: i32 = WIDENING + WIDENING_BYTES;

/**
 * Largest relative error: some 50 roundings of f64. Where the largest of 20 is left out of their sum it is no more than half of it.
 */
export const NEAR_ERROR: f64 = 1e-14;

/** Bytes of scratch that `measureNear` needs of a grid. */
export function nearScratchBytes(grid: i32): i32 {
  return ROOTS + 8 * (reachOf(grid) + 1) * PAIRS * PITCH;
}

/** Lines that the near entries reach. */
export function reachOf(grid: i32): i32 {
  let reach: i32 = 0;
  for (let nth: i32 = 0; nth < NEAR && nth < i32At(grid, OFFSET_COUNT); nth += 2) {
    const line = i32At(i32At(grid, OFFSET_LINES), nth);
    if (line > reach) reach = line;
  }
  return reach;
}

/** Mean distances (f64) of the points of some lines, right within NEAR_ERROR. Positions without a point are left as they are. */
export function measureNear(grid: i32, best: i32, distances: i32, firstLine: i32, endLine: i32, work: i32): void {
  const width = i32At(grid, WIDTH);
  const reach = reachOf(grid);
  for (let firstColumn: i32 = 0; firstColumn < width; firstColumn += BAND) {
    const endColumn = firstColumn + BAND < width ? firstColumn + BAND : width;
    if (i32At(grid, OFFSET_COUNT) > NEAR) {
      squareColumns(grid, best, firstColumn, endColumn);
      for (let line = firstLine - reach; line < firstLine; line++) {
        keepRoots(grid, best, reach, firstColumn, endColumn, line);
      }
    }
    for (let line = firstLine; line < endLine; line++) {
      measureBand(grid, best, reach, distances, firstColumn, endColumn, line, work);
    }
  }
}

/** The line's place among those that are kept. */
function rootsOfLine(best: i32, reach: i32, line: i32): i32 {
  return ((best + ROOTS) >> 3) + ((line + PADDING) % (reach + 1)) * PAIRS * PITCH;
}

/** Of a column and another the squared lateral difference, for every pair of entries and every column that it is needed of. */
function squareColumns(grid: i32, best: i32, firstColumn: i32, endColumn: i32): void {
  const singles = viewSingles();
  const doubles = viewDoubles();
  const xs = i32At(grid, XS) >> 2;
  const pairs = widePairs(grid);
  for (let pair: i32 = 0; pair < pairs; pair++) {
    const step = i32At(i32At(grid, OFFSET_COLUMNS), 2 * pair);
    const squares = ((best + SQUARES) >> 3) + pair * PITCH + PADDING - firstColumn;
    const end = step < 0 ? endColumn - step : endColumn;
    for (let column = step > 0 ? firstColumn - step : firstColumn; column < end; column++) {
      const dx = (singles[xs + column + step] as f64) - (singles[xs + column] as f64);
      doubles[squares + column] = dx * dx;
    }
  }
}

/** Pairs of the offset table that a widening look may take. */
function widePairs(grid: i32): i32 {
  const pairs = (i32At(grid, OFFSET_COUNT) - 1) >> 1;
  return pairs < WIDE_PAIRS ? pairs : WIDE_PAIRS;
}

/** Of a line and another the squared lateral difference, for every pair of entries: to the one that lies on, and to the opposite one. */
function squareLines(grid: i32, best: i32, line: i32): void {
  const singles = viewSingles();
  const doubles = viewDoubles();
  const words = viewWords();
  const ys = (i32At(grid, YS) >> 2) + line;
  const lines = i32At(grid, OFFSET_LINES) >> 2;
  const squares = (best + LINE_SQUARES) >> 3;
  const pairs = widePairs(grid);
  for (let pair: i32 = 0; pair < pairs; pair++) {
    const step = words[lines + 2 * pair] as i32;
    const dy = (singles[ys + step] as f64) - (singles[ys] as f64);
    const opposite = (singles[ys - step] as f64) - (singles[ys] as f64);
    doubles[squares + 2 * pair] = dy * dy;
    doubles[squares + 2 * pair + 1] = opposite * opposite;
  }
}

/** The distances of a line's positions to those that lie on in it, or in the next ones. */
function keepRoots(grid: i32, best: i32, reach: i32, firstColumn: i32, endColumn: i32, line: i32): void {
  const singles = viewSingles();
  const doubles = viewDoubles();
  const stride = i32At(grid, STRIDE);
  const ys = i32At(grid, YS) >> 2;
  const zs = (i32At(grid, ZS) >> 2) + line * stride;
  const lineRoots = rootsOfLine(best, reach, line) + PADDING - firstColumn;
  for (let pair: i32 = 0; pair < PAIRS; pair++) {
    const columnStep = i32At(i32At(grid, OFFSET_COLUMNS), 2 * pair);
    const lineStep = i32At(i32At(grid, OFFSET_LINES), 2 * pair);
    const dy = (singles[ys + line + lineStep] as f64) - (singles[ys + line] as f64);
    const squaredDy = dy * dy;
    const squares = ((best + SQUARES) >> 3) + pair * PITCH + PADDING - firstColumn;
    const roots = lineRoots + pair * PITCH;
    const others = zs + lineStep * stride + columnStep;
    const end = columnStep < 0 ? endColumn - columnStep : endColumn;
    let column = columnStep > 0 ? firstColumn - columnStep : firstColumn;
    // Two at a time: what JavaScript checks of an array it checks once in each turn.
    for (; column + 1 < end; column += 2) {
      const dz = (singles[others + column] as f64) - (singles[zs + column] as f64);
      const nextDz = (singles[others + column + 1] as f64) - (singles[zs + column + 1] as f64);
      const square = doubles[squares + column] as f64;
      const nextSquare = doubles[squares + column + 1] as f64;
      doubles[roots + column] = Math.sqrt(square + squaredDy + dz * dz);
      doubles[roots + column + 1] = Math.sqrt(nextSquare + squaredDy + nextDz * nextDz);
    }
    if (column < end) {
      const dz = (singles[others + column] as f64) - (singles[zs + column] as f64);
      doubles[roots + column] = Math.sqrt((doubles[squares + column] as f64) + squaredDy + dz * dz);
    }
  }
}

function measureBand(
  grid: i32,
  best: i32,
  reach: i32,
  distances: i32,
  firstColumn: i32,
  endColumn: i32,
  line: i32,
  work: i32,
): void {
  const singles = viewSingles();
  const doubles = viewDoubles();
  const words = viewWords();
  const zs = (i32At(grid, ZS) >> 2) + line * i32At(grid, STRIDE);
  const out = (distances >> 3) + line * i32At(grid, WIDTH);
  const places = (best + PLACES) >> 2;
  // An import is looked up wherever it is named: not in the inner loop.
  const unresolved = UNRESOLVED;
  const near = NEAR;
  const parts: f64 = NEIGHBOURS + 1;
  const squares = ((best + SQUARES) >> 3) + PADDING - firstColumn;
  const lineSquares = (best + LINE_SQUARES) >> 3;
  let areLinesSquared = false;
  let limit: f64 = -1.0;
  if (i32At(grid, OFFSET_COUNT) > NEAR) {
    limit = Math.sqrt(f64At(i32At(grid, OFFSET_BOUNDS), NEAR));
    keepRoots(grid, best, reach, firstColumn, endColumn, line);
    placeRoots(grid, best, reach, firstColumn, line);
  }
  for (let column = firstColumn; column < endColumn; column++) {
    if ((singles[zs + column] as f64) === Infinity) continue;
    let distance = unresolved;
    if (limit >= 0.0) {
      let sum: f64 = 0.0;
      let largest: f64 = 0.0;
      let far: i32 = 0;
      // Without a branch, which would be taken at random: twice the larger of two is their sum and what they differ by. Of four at a time, as
      // each waits for the one before.
      for (let nth: i32 = 0; nth < near; nth += 4) {
        const one = doubles[(words[places + nth] as i32) + column] as f64;
        const other = doubles[(words[places + nth + 1] as i32) + column] as f64;
        const third = doubles[(words[places + nth + 2] as i32) + column] as f64;
        const fourth = doubles[(words[places + nth + 3] as i32) + column] as f64;
        far += Number(one > limit) + Number(other > limit) + Number(third > limit) + Number(fourth > limit);
        const both = one + other;
        const last = third + fourth;
        const larger = 0.5 * (both + Math.abs(one - other));
        const largerOfLast = 0.5 * (last + Math.abs(third - fourth));
        const largestOfFour = 0.5 * (larger + largerOfLast + Math.abs(larger - largerOfLast));
        sum += both + last;
        largest = 0.5 * (largest + largestOfFour + Math.abs(largest - largestOfFour));
      }
      // Not where the largest outweighs the others, or is infinite: there the sum has lost them.
      if (far < 2 && sum - largest >= largest) distance = (sum - largest) / parts;
      else if (far === 1) distance = meanWithin(best, column, limit);
      else if (far > 1) {
        if (!areLinesSquared) squareLines(grid, best, line);
        areLinesSquared = true;
        const room = best + WIDENING;
        distance = meanOfWidening(
          grid,
          room,
          best + PLACES,
          NEAR,
          limit,
          far,
          column,
          line,
          squares + column,
          PITCH,
          lineSquares,
        );
      }
    }
    if (distance < 0.0) distance = meanDistance(grid, best, column, line, work);
    doubles[out + column] = distance;
  }
}

/** The mean of the near distances without the one that is farther than the limit. */
function meanWithin(best: i32, column: i32, limit: f64): f64 {
  const doubles = viewDoubles();
  const words = viewWords();
  const places = (best + PLACES) >> 2;
  let sum: f64 = 0.0;
  for (let nth: i32 = 0; nth < NEAR; nth++) {
    const root = doubles[(words[places + nth] as i32) + column] as f64;
    if (root <= limit) sum += root;
  }
  return sum / (NEIGHBOURS + 1);
}

/** Where the distances of column 0 are kept: to the positions that lie on from it, and of those that it lies on from. */
function placeRoots(grid: i32, best: i32, reach: i32, firstColumn: i32, line: i32): void {
  for (let pair: i32 = 0; pair < PAIRS; pair++) {
    const columnStep = i32At(i32At(grid, OFFSET_COLUMNS), 2 * pair);
    const lineStep = i32At(i32At(grid, OFFSET_LINES), 2 * pair);
    const within = pair * PITCH + PADDING - firstColumn;
    setI32(best + PLACES, 2 * pair, rootsOfLine(best, reach, line) + within);
    setI32(best + PLACES, 2 * pair + 1, rootsOfLine(best, reach, line - lineStep) + within - columnStep);
  }
}
