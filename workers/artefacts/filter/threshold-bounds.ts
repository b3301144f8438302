/** Between what the filter's threshold lies, from sums over distances that are not exact. */

/** Sums over the mean distances d of all points, mm. */
export interface DistanceSums {
  points: number;
  /** Points with d > 0, which alone are summed. */
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

/** With less deviation, as a share of the root mean square, rounding has too much of a part in it. */
const LEAST_DEVIATION = 1e-4;

/**
 * Distances that are each off by a share e of themselves at most move the mean m by that share of it. They move the deviation s, the norm of
 * d - m by sqrt(n - 1), by no more than that share of their root mean square r; and, since the root is concave, by no more than their components
 * along d - m do, whose sum is e Σ d |d - m| / (n - 1) s, and half of e² r² / s: that is less where few points lie far off. Which holds of
 * points that are all summed.
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
  // The rounding of the sums: points * 2^-53 of themselves, here and where the exact threshold is computed, whatever their order.
  const rounding = points * 2 ** -51 * (mean + 2 * rootMeanSquare);
  // One in a hundred more for the products of errors, and for n in place of n - 1.
  const doubt = 1.01 * error * share + rounding;
  const threshold = mean + 2 * deviation;
  return { low: threshold - doubt, high: threshold + doubt };
}
