/**
 * Between what the filter's threshold lies, from sums over parts of the points. Each part is summed around a mean of its own, and so that of all
 * is made up of positive terms, which do not cancel out (T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating Formulae and a Pairwise Algorithm
 * for Computing Sample Variances", 1979).
 */

/** Sums over the mean distances d of some points, mm. */
export interface DistanceSums {
  points: number;
  /** Points with d > 0, which alone are summed; and those whose d is open. */
  counted: number;
  open: number;
  sum: number;
  around: number;
  /** Σ (d - around)². */
  squares: number;
  /** Σ d |d - around|. */
  spread: number;
}

/** The exact threshold lies between `low` and `high`; distances are within `error` of themselves. */
export interface ThresholdBounds {
  low: number;
  high: number;
  error: number;
}

/** With less deviation, as a share of the root mean square, rounding has too much of a part in it. */
const LEAST_DEVIATION = 1e-4;

/** Of squares around anything but the mean, the share that its distance from the mean may have: rounding grows by little more than as much. */
const GREATEST_SHARE_APART = 1 / 64;

/**
 * Distances that are each off by a share e of themselves at most move the mean m by that share of it. They move the deviation s, the norm of
 * d - m by sqrt(n - 1), by no more than that share of their root mean square r; and, since the root is concave, by no more than their components
 * along d - m do, whose sum is e Σ d |d - m| / (n - 1) s, and half of e² r² / s: that is less where few points lie far off. Which holds of
 * points that are all summed.
 *
 * @param parts without open points
 * @param error largest relative error of a distance
 */
export function boundThreshold(parts: readonly DistanceSums[], error: number): ThresholdBounds {
  let points = 0;
  let distances = 0;
  for (const part of parts) {
    points += part.points;
    distances += part.sum;
  }
  const mean = distances / points;
  let squares = 0;
  let spreads = 0;
  let areAllSummed = true;
  for (const { points, counted, around, sum, squares: aroundIt, spread } of parts) {
    const offset = around - mean;
    squares += aroundIt + offset * (2 * (sum - counted * around) + counted * offset);
    spreads += spread + Math.abs(offset) * sum;
    areAllSummed &&= points === counted;
  }
  const deviation = Math.sqrt(Math.max(0, squares) / (points - 1));
  const rootMeanSquare = Math.sqrt(mean * mean + deviation * deviation);
  const along = (spreads / points + 0.5 * error * rootMeanSquare ** 2) / deviation;
  const isAlong = deviation > LEAST_DEVIATION * rootMeanSquare && areAllSummed;
  const share = mean + 2 * (isAlong ? Math.min(along, rootMeanSquare) : rootMeanSquare);
  // The rounding of the sums: points * 2^-53 of themselves, here and where the exact threshold is computed, whatever their order; and what
  // that of a part's sum makes of its offset, which is as much of the root mean square.
  const rounding = points * 2 ** -51 * (mean + 2 * rootMeanSquare);
  // One in a hundred more for the products of errors, and for n in place of n - 1.
  const doubt = 1.01 * error * share + rounding;
  const threshold = mean + 2 * deviation;
  return { low: threshold - doubt, high: threshold + doubt, error };
}

/**
 * The same sums around their mean; null where they are around something so far from it that too much would cancel out. The spread comes out as
 * much greater as the two are apart at most, which only adds to the doubt.
 */
export function sumsAround(mean: number, sums: DistanceSums): DistanceSums | null {
  const offset = Math.abs(sums.around - mean);
  const apart = sums.counted * offset * offset;
  if (apart > GREATEST_SHARE_APART * sums.squares) return null;
  return { ...sums, around: mean, squares: sums.squares - apart, spread: sums.spread + offset * sums.sum };
}

export function total<T>(parts: readonly T[], of: (part: T) => number): number {
  return parts.reduce((sum, part) => sum + of(part), 0);
}
