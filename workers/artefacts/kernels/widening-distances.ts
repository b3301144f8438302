/**
 * The mean distance of a point whose 19 nearest are not all among the 20 laterally nearest positions, in f64, right but for the order of its
 * sum. What lies within the lateral distance of the next position is nearer than anything that was not looked at. So the look widens a few
 * positions at a time, and only takes up what has come within: nothing is kept in order but what came in with the last step.
 */
import { type f64, f64At, type i32, i32At, viewDoubles, viewSingles, viewWords } from "./linear-memory.js";
import {
  NEIGHBOURS,
  OFFSET_BOUNDS,
  OFFSET_COLUMNS,
  OFFSET_COUNT,
  OFFSET_LINES,
  OFFSET_STEPS,
  STRIDE,
  UNRESOLVED,
  XS,
  YS,
  ZS,
} from "./neighbour-search.js";

/** Entries of the offset table that are looked at at most: farther ones are for the search that passes over most of them. */
const MOST: i32 = 100;
/** Entries that are taken up at a time: few as long as most points end with them, and then so many that few looks are needed. */
const FINE_STEP: i32 = 4;
const FINE: i32 = 28;
const STEP: i32 = 8;
const COARSE: i32 = 44;
const COARSE_STEP: i32 = 14;
/** Where squared distances wait that are farther than what is surely near, and where those are that have come within: (f64). */
const WAITING: i32 = 0;
const WITHIN: i32 = 8 * MOST;
export const WIDENING_BYTES: i32 = 16 * MOST;

/**
 * @param room WIDENING_BYTES of scratch
 * @param places index (i32) among the memory's f64 of the distance to every one of the first `known` entries, less the column
 * @returns UNRESOLVED when the nearest are not among the entries that are looked at
 */
export function meanOfWidening(grid: i32, room: i32, places: i32, known: i32, column: i32, line: i32): f64 {
  const singles = viewSingles();
  const doubles = viewDoubles();
  const words = viewWords();
  const columns = i32At(grid, OFFSET_COLUMNS) >> 2;
  const lines = i32At(grid, OFFSET_LINES) >> 2;
  const steps = i32At(grid, OFFSET_STEPS) >> 2;
  const hereX = (i32At(grid, XS) >> 2) + column;
  const hereY = (i32At(grid, YS) >> 2) + line;
  const here = (i32At(grid, ZS) >> 2) + line * i32At(grid, STRIDE) + column;
  const x = singles[hereX] as f64;
  const y = singles[hereY] as f64;
  const z = singles[here] as f64;
  const waiting = (room + WAITING) >> 3;
  const within = (room + WITHIN) >> 3;
  const table = i32At(grid, OFFSET_COUNT);
  const most: i32 = table - 1 < MOST ? table - 1 : MOST;
  let nth = known;
  let end = nth + FINE_STEP < most ? nth + FINE_STEP : most;
  let limit = f64At(i32At(grid, OFFSET_BOUNDS), end);
  let came: i32 = 0;
  let wait: i32 = 0;
  for (let at: i32 = 0; at < known; at++) {
    const root = doubles[(words[(places >> 2) + at] as i32) + column] as f64;
    const squared = root * root;
    // Both written and one of them counted: a branch would be taken at random. Squares, so that it need not wait for a root.
    doubles[within + came] = squared;
    doubles[waiting + wait] = squared;
    const isWithin: i32 = Number(squared <= limit);
    came += isWithin;
    wait += Number(squared < Infinity) - isWithin;
  }
  let sum: f64 = 0.0;
  let taken: i32 = 0;
  for (;;) {
    for (; nth < end; nth++) {
      const dx = (singles[hereX + (words[columns + nth] as i32)] as f64) - x;
      const dy = (singles[hereY + (words[lines + nth] as i32)] as f64) - y;
      const dz = (singles[here + (words[steps + nth] as i32)] as f64) - z;
      const squared = dx * dx + dy * dy + dz * dz;
      doubles[within + came] = squared;
      doubles[waiting + wait] = squared;
      const isWithin: i32 = Number(squared <= limit);
      came += isWithin;
      wait += Number(squared < Infinity) - isWithin;
    }
    if (taken + came >= NEIGHBOURS || nth === most) break;
    for (let at: i32 = 0; at < came; at++) sum += Math.sqrt(doubles[within + at] as f64);
    taken += came;
    end = nth + (nth < FINE ? FINE_STEP : nth < COARSE ? STEP : COARSE_STEP);
    if (end > most) end = most;
    limit = f64At(i32At(grid, OFFSET_BOUNDS), end);
    came = 0;
    let rest: i32 = 0;
    for (let at: i32 = 0; at < wait; at++) {
      const squared = doubles[waiting + at] as f64;
      doubles[within + came] = squared;
      doubles[waiting + rest] = squared;
      const isWithin: i32 = Number(squared <= limit);
      came += isWithin;
      rest += 1 - isWithin;
    }
    wait = rest;
  }
  if (taken + came < NEIGHBOURS) return UNRESOLVED;
  return (sum + rootsOfLeast(within, came, NEIGHBOURS - taken)) / (NEIGHBOURS + 1);
}

/** Of `count` values from `first` on, which lose their order, the sum of the roots of the `least` smallest: without the others, or of them alone. */
function rootsOfLeast(first: i32, count: i32, least: i32): f64 {
  const doubles = viewDoubles();
  let end = first + count;
  let sum: f64 = 0.0;
  if (count - least <= least) {
    for (let left = count - least; left > 0; left--) {
      let largest = first;
      for (let at = first + 1; at < end; at++) {
        if ((doubles[at] as f64) > (doubles[largest] as f64)) largest = at;
      }
      end--;
      doubles[largest] = doubles[end] as f64;
    }
    for (let at = first; at < end; at++) sum += Math.sqrt(doubles[at] as f64);
    return sum;
  }
  for (let left = least; left > 0; left--) {
    let smallest = first;
    for (let at = first + 1; at < end; at++) {
      if ((doubles[at] as f64) < (doubles[smallest] as f64)) smallest = at;
    }
    sum += Math.sqrt(doubles[smallest] as f64);
    end--;
    doubles[smallest] = doubles[end] as f64;
  }
  return sum;
}
