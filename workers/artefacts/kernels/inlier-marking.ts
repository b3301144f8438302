/** The mask from approximate distances. assembly/inlier-marking.ts is the same for eight at a time. */
import { type f64, type i32, i32At } from "./linear-memory.js";
import { WIDTH } from "./neighbour-search.js";
import { DECIDED, markInlier, UNDECIDED } from "./outlier-statistics.js";

/**
 * Decides from approximate distances, whose relative error is at most `error`: the exact threshold lies between `low` and `high`, a
 * point whose distance leaves no doubt is decided, and others are searched again, exactly. Only where an exact distance lies between
 * the two does it need the exact threshold: then the result is UNDECIDED, and the mask void.
 */
export function markInliers(
  grid: i32,
  best: i32,
  distances: i32,
  itemBytes: i32,
  mask: i32,
  firstLine: i32,
  endLine: i32,
  low: f64,
  high: f64,
  error: f64,
  work: i32,
): i32 {
  const width = i32At(grid, WIDTH);
  const surelyBelow = low * (1.0 - error);
  const surelyAbove = high * (1.0 + error);
  for (let line: i32 = firstLine; line < endLine; line++) {
    for (let column: i32 = 0; column < width; column++) {
      const outcome = markInlier(
        grid,
        best,
        distances,
        itemBytes,
        mask,
        column,
        line,
        low,
        high,
        surelyBelow,
        surelyAbove,
        work,
      );
      if (outcome === UNDECIDED) return UNDECIDED;
    }
  }
  return DECIDED;
}
