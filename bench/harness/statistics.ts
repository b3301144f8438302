/**
 * The statistics of the harness. Timings on a shared machine have long right tails and no known distribution, so everything here goes by rank:
 * medians, quartiles, intervals of order statistics.
 */

export interface Spread {
  count: number;
  median: number;
  /** First and third quartile. */
  lowerQuartile: number;
  upperQuartile: number;
  minimum: number;
  maximum: number;
}

export interface Interval {
  low: number;
  high: number;
  /** Probability that the interval covers the true value, 0 to 1. */
  confidence: number;
}

function ascending(values: readonly number[]): number[] {
  if (values.length === 0) throw new RangeError("statistics: no values");
  for (const value of values) {
    if (!Number.isFinite(value)) throw new RangeError(`statistics: ${value} is not a finite number`);
  }
  return [...values].sort((a, b) => a - b);
}

/** Linear interpolation between order statistics (Hyndman & Fan 1996, type 7: numpy's default), `p` in [0, 1]. */
function quantileOfSorted(sorted: readonly number[], p: number): number {
  const position = (sorted.length - 1) * p;
  const below = Math.floor(position);
  const low = sorted[below] as number;
  const high = sorted[Math.min(below + 1, sorted.length - 1)] as number;
  return low + (high - low) * (position - below);
}

export function quantile(values: readonly number[], p: number): number {
  return quantileOfSorted(ascending(values), p);
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

export function describeSpread(values: readonly number[]): Spread {
  const sorted = ascending(values);
  return {
    count: sorted.length,
    median: quantileOfSorted(sorted, 0.5),
    lowerQuartile: quantileOfSorted(sorted, 0.25),
    upperQuartile: quantileOfSorted(sorted, 0.75),
    minimum: sorted[0] as number,
    maximum: sorted.at(-1) as number,
  };
}

/**
 * Distribution-free confidence interval of the median: the narrowest symmetric pair of order statistics that covers it with
 * at least `confidence` (David & Nagaraja, Order Statistics, section 7.1). If there are too few values, it is minimum and
 * maximum. The interval carries the coverage it really has: 1 - 2 P(Binomial(n, 1/2) < k).
 */
export function medianInterval(values: readonly number[], confidence = 0.95): Interval {
  const sorted = ascending(values);
  const count = sorted.length;
  let probability = 0.5 ** count;
  let below = probability;
  let rank = 1;
  for (let k = 2; k <= count / 2; k++) {
    probability *= (count - k + 2) / (k - 1);
    if (1 - 2 * (below + probability) < confidence) break;
    below += probability;
    rank = k;
  }
  return {
    low: sorted[rank - 1] as number,
    high: sorted[count - rank] as number,
    confidence: Math.max(0, 1 - 2 * below),
  };
}
