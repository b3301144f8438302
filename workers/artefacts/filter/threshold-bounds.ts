/** The bounds of the filter's threshold, from sums over distances that are not exact. */

/** Sums over the mean distances d of all points, mm. */
export interface DistanceSums {
  points: number;
  /** Points with d > 0. Only these are summed. */
  counted: number;
  sum: number;
  /** Σ (d - sum / points)². */
  squares: number;
  /** Σ d |d - sum / points|. */
  spread: number;
}

/** The exact threshold lies between `low` and `high`. */
export interface ThresholdBounds {
  low: number;
  high: number;
}

/** Below this deviation, as a share of the root mean square, rounding has too much influence. */
const LEAST_DEVIATION = 1e-4;

/**
 * How far the threshold can be off. Let each distance be off by at most a share e of itself.
 *
 * - The mean m is off by at most that share of m.
 * - The deviation s, which is the norm of d - m by sqrt(n - 1), is off by at most that share of the root mean square r.
 * - The root is concave. So s is also off by at most the errors' components along d - m and half of e² r² / s. The
 *   components' sum is e Σ d |d - m| / (n - 1) s. This bound is smaller where few points lie far off. It holds only if
 *   all points are summed.
 *
 * @param error largest relative error of a distance
 */
export function boundThreshold(
  { points, counted, sum, squares, spread }: DistanceSums,
  error: number,
): ThresholdBounds {
  const mean = sum / points;
  const deviation = Math.sqrt(squares / (points - 1));
  const rootMeanSquare = Math.sqrt(mean * mean + deviation * deviation);
  const along = (spread / points + 0.5 * error * rootMeanSquare ** 2) / deviation;
  const isAlong = deviation > LEAST_DEVIATION * rootMeanSquare && points === counted;
  const share = mean + 2 * (isAlong ? Math.min(along, rootMeanSquare) : rootMeanSquare);
  // The rounding of the sums: points * 2^-53 of themselves, here and where the exact threshold is computed, in any
  // order.
  const rounding = points * 2 ** -51 * (mean + 2 * rootMeanSquare);
  // One percent more covers the products of errors, and n in place of n - 1.
  const doubt = 1.01 * error * share + rounding;
  const threshold = mean + 2 * deviation;
  return { low: threshold - doubt, high: threshold + doubt };
}
