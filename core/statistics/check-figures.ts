import { capabilityOf, D2_OF_TWO, finite, type Limits } from "./capability.js";
import { type Histogram, histogramOf } from "./histogram.js";
import { meanMovingRangeOf, meanOf, quantileOf, rangeOf, standardDeviationOf } from "./value-statistics.js";

/** A part of a check's values, one after the other. */
export interface TrendBucket {
  readonly count: number;
  readonly mean: number | null;
  readonly minimum: number;
  readonly maximum: number;
}

export interface CheckFigures {
  readonly mean: number | null;
  readonly standard_deviation: number | null;
  readonly minimum: number | null;
  readonly maximum: number | null;
  readonly median: number | null;
  readonly cp: number | null;
  readonly cpk: number | null;
  readonly pp: number | null;
  readonly ppk: number | null;
  readonly histogram: Histogram | null;
}

const NOTHING: CheckFigures = {
  mean: null,
  standard_deviation: null,
  minimum: null,
  maximum: null,
  median: null,
  cp: null,
  cpk: null,
  pp: null,
  ppk: null,
  histogram: null,
};

/**
 * The figures of one check.
 *
 * @param values in the order in which they were measured; afterwards they are in another order
 */
export function checkFigures(values: Float64Array, limits: Limits): CheckFigures {
  if (values.length === 0) return NOTHING;
  const range = rangeOf(values);
  // Rounding must not give equal values a spread, and with it a capability.
  const isOneValue = range.minimum === range.maximum;
  const mean = isOneValue ? range.minimum : meanOf(values);
  const standardDeviation = isOneValue && values.length > 1 ? 0 : standardDeviationOf(values, mean);
  const short = capabilityOf(mean, meanMovingRangeOf(values) / D2_OF_TWO, limits);
  const long = capabilityOf(mean, standardDeviation, limits);
  const median = quantileOf(values, 0.5);
  const interquartileRange = quantileOf(values, 0.75) - quantileOf(values, 0.25);
  return {
    mean: finite(mean),
    standard_deviation: finite(standardDeviation),
    ...range,
    median: finite(median),
    cp: short.index,
    cpk: short.centred,
    pp: long.index,
    ppk: long.centred,
    histogram: histogramOf(values, range, interquartileRange),
  };
}

/** The bucket of the `nth` of `count` values, when they are shared out evenly to `buckets`. */
export function bucketOf(nth: number, count: number, buckets: number): number {
  return Math.floor(((nth + 1) * buckets - 1) / count);
}

/** The values in `buckets` parts of about the same size, in their order. */
export function trendOf(values: Float64Array, buckets: number): TrendBucket[] {
  const n = values.length;
  return Array.from({ length: buckets }, (_, bucket) => {
    const [start, end] = [Math.floor((bucket * n) / buckets), Math.floor(((bucket + 1) * n) / buckets)];
    return { count: end - start, mean: finite(meanOf(values, start, end)), ...rangeOf(values, start, end) };
  });
}
