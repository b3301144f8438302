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
  /** Σ (d - around)². */
  around: number;
  squares: number;
}

/** The exact threshold lies between `low` and `high`; distances are within `error` of themselves. */
export interface ThresholdBounds {
  low: number;
  high: number;
  error: number;
}

/**
 * @param parts without open points
 * @param error largest relative error of a distance
 */
export function boundThreshold(parts: readonly DistanceSums[], error: number): ThresholdBounds {
  const points = total(parts, ({ points }) => points);
  const mean = total(parts, ({ sum }) => sum) / points;
  const squares = total(parts, ({ counted, around, sum, squares }) => {
    const offset = around - mean;
    return squares + offset * (2 * (sum - counted * around) + counted * offset);
  });
  const deviation = Math.sqrt(Math.max(0, squares) / (points - 1));
  const threshold = mean + 2 * deviation;
  // Mean and deviation of values that are each off by a share of themselves: the mean by that share of it, the deviation by that
  // share of their root mean square. The other term is the rounding of the sums: points * 2^-53 of themselves, here and where the exact
  // threshold is computed, whatever their order; and what that of a part's sum makes of its offset, which is as much of the root mean square.
  const rounding = points * 2 ** -51;
  const doubt = (1.01 * error + rounding) * (mean + 2 * Math.sqrt(mean * mean + deviation * deviation));
  return { low: threshold - doubt, high: threshold + doubt, error };
}

export function total<T>(parts: readonly T[], of: (part: T) => number): number {
  return parts.reduce((sum, part) => sum + of(part), 0);
}
