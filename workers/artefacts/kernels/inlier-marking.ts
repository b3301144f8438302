/** The mask from approximate distances. assembly/inlier-marking.ts is the same for eight at a time. */
import { type f64, type i32, i32At, setU8, u8At, viewDoubles, viewSingles } from "./linear-memory.js";
import { STRIDE, WIDTH, ZS } from "./neighbour-search.js";
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
  const singles = viewSingles();
  const doubles = viewDoubles();
  for (let line: i32 = firstLine; line < endLine; line++) {
    const zs = (i32At(grid, ZS) >> 2) + line * i32At(grid, STRIDE);
    // Of a byte of the mask those bits that are not in it yet.
    let byte = (line * width) >> 3;
    let bits: i32 = 0;
    for (let column: i32 = 0; column < width; column++) {
      if ((singles[zs + column] as f64) === Infinity) continue;
      const at = line * width + column;
      let distance: f64 = 0.0;
      if (itemBytes === 4) distance = singles[(distances >> 2) + at] as f64;
      else distance = doubles[(distances >> 3) + at] as f64;
      if (distance > surelyAbove) continue;
      if (distance > 0.0 && distance < surelyBelow) {
        if (at >> 3 !== byte) {
          if (bits !== 0) setU8(mask, byte, u8At(mask, byte) | bits);
          byte = at >> 3;
          bits = 0;
        }
        bits |= 1 << (at & 7);
        continue;
      }
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
    if (bits !== 0) setU8(mask, byte, u8At(mask, byte) | bits);
  }
  return DECIDED;
}
