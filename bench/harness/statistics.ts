/**
 * The statistics of the harness. Timings on a shared machine have long right tails and no known distribution, so all of it
 * is by rank or by resampling: medians, quartiles, order-statistic intervals, Mann-Whitney, bootstrap.
 */
import { createRandom } from "../../core/random.js";

export interface Spread {
  count: number;
  median: number;
  /** First and third quartile. */
  lowerQuartile: number;
  upperQuartile: number;
  /** Median absolute deviation from the median, unscaled. */
  mad: number;
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
  const middle = quantileOfSorted(sorted, 0.5);
  return {
    count: sorted.length,
    median: middle,
    lowerQuartile: quantileOfSorted(sorted, 0.25),
    upperQuartile: quantileOfSorted(sorted, 0.75),
    mad: median(sorted.map((value) => Math.abs(value - middle))),
    minimum: sorted[0] as number,
    maximum: sorted.at(-1) as number,
  };
}

/**
 * Distribution-free confidence interval of the median: the narrowest symmetric pair of order statistics that covers it with
 * at least `confidence` (David & Nagaraja, Order Statistics, section 7.1), or minimum and maximum when there are too few
 * values. The interval carries the coverage it really has: 1 - 2 P(Binomial(n, 1/2) < k).
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

/**
 * Percentile bootstrap of median(a) / median(b), the two samples resampled independently (Efron & Tibshirani 1993, section
 * 13.3). Repeatable from `seed`.
 */
export function ratioOfMediansInterval(
  a: readonly number[],
  b: readonly number[],
  options: { confidence?: number; resamples?: number; seed?: number } = {},
): Interval {
  const { confidence = 0.99, resamples = 10_000, seed = 1 } = options;
  const random = createRandom(seed);
  const resampledMedian = (values: readonly number[]): number => {
    const sample = new Float64Array(values.length);
    for (let i = 0; i < sample.length; i++) sample[i] = values[random.integer(0, values.length - 1)] as number;
    sample.sort();
    const half = sample.length >> 1;
    return sample.length % 2 === 1
      ? (sample[half] as number)
      : ((sample[half - 1] as number) + (sample[half] as number)) / 2;
  };
  ascending(a);
  ascending(b);
  const ratios = Array.from({ length: resamples }, () => resampledMedian(a) / resampledMedian(b)).sort((x, y) => x - y);
  return {
    low: quantileOfSorted(ratios, (1 - confidence) / 2),
    high: quantileOfSorted(ratios, (1 + confidence) / 2),
    confidence,
  };
}

/**
 * Two-sided Mann-Whitney U test: the probability of ranks at least this far apart if both samples came from one distribution.
 * Exact (Mann & Whitney 1947, by their recurrence) without ties, else normal with tie and continuity correction.
 */
export function mannWhitneyP(a: readonly number[], b: readonly number[]): number {
  const n = a.length;
  const m = b.length;
  ascending(a);
  ascending(b);
  let u = 0;
  for (const x of a) for (const y of b) u += x > y ? 1 : x === y ? 0.5 : 0;
  const far = Math.max(u, n * m - u);

  const counts = new Map<number, number>();
  for (const value of [...a, ...b]) counts.set(value, (counts.get(value) ?? 0) + 1);
  const hasTies = counts.size < n + m;
  if (!hasTies) {
    // ways[i][j][k]: orderings of i and j values with U = k; only row i is kept.
    let rows: Float64Array[] = Array.from({ length: m + 1 }, () => Float64Array.of(1));
    for (let i = 1; i <= n; i++) {
      const next: Float64Array[] = [Float64Array.of(1)];
      for (let j = 1; j <= m; j++) {
        const ways = new Float64Array(i * j + 1);
        // The largest value is one of a (it beats all j of b), or one of b.
        const largestIsA = rows[j] as Float64Array;
        const largestIsB = next[j - 1] as Float64Array;
        for (let k = 0; k < largestIsA.length; k++) ways[k + j] = (ways[k + j] as number) + (largestIsA[k] as number);
        for (let k = 0; k < largestIsB.length; k++) ways[k] = (ways[k] as number) + (largestIsB[k] as number);
        next.push(ways);
      }
      rows = next;
    }
    const ways = rows[m] as Float64Array;
    const total = ways.reduce((sum, way) => sum + way, 0);
    let tail = 0;
    for (let k = far; k < ways.length; k++) tail += ways[k] as number;
    return Math.min(1, (2 * tail) / total);
  }
  const all = n + m;
  let ties = 0;
  for (const count of counts.values()) ties += count ** 3 - count;
  const variance = ((n * m) / 12) * (all + 1 - ties / (all * (all - 1)));
  if (variance <= 0) return 1;
  const z = (far - (n * m) / 2 - 0.5) / Math.sqrt(variance);
  return Math.min(1, 2 * upperTailOfNormal(z));
}

/** P(Z > z), Abramowitz & Stegun 7.1.26: absolute error below 1e-7, ample for a threshold. */
function upperTailOfNormal(z: number): number {
  if (z < 0) return 1 - upperTailOfNormal(-z);
  const x = z / Math.SQRT2;
  const t = 1 / (1 + 0.3275911 * x);
  const polynomial = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return 0.5 * polynomial * Math.exp(-x * x);
}
