/**
 * Capability of a characteristic, for individual values (ISO 22514-2:2017, the AIAG SPC manual, 2nd edition, chapter IV;
 * NIST/SEMATECH e-Handbook of Statistical Methods, 6.1.6). With the limits L and U, the mean m and a standard deviation s:
 *
 * - index C = (U − L) / (6 s), for two limits
 * - its centred form Ck = min((U − m) / (3 s), (m − L) / (3 s)); with one limit, the term of that limit
 *
 * Cp and Cpk take s from the moving range of successive values: s = MR / d2, with d2 = 1.128 for ranges of two values. So they
 * show the spread from part to part. Pp and Ppk take the standard deviation of all values, which includes drifts.
 */

/** Expected range of two values of a normal distribution, in standard deviations (AIAG SPC manual, appendix E). */
export const D2_OF_TWO = 1.128;

export interface Limits {
  readonly lower: number | null;
  readonly upper: number | null;
}

export interface Capability {
  readonly index: number | null;
  readonly centred: number | null;
}

/**
 * Null without limits, and where the spread is 0 or unknown: then there is no index. Null too if the upper limit is below the
 * lower one.
 */
export function capabilityOf(mean: number, standardDeviation: number, { lower, upper }: Limits): Capability {
  const none = { index: null, centred: null };
  if (!(standardDeviation > 0) || (lower !== null && upper !== null && upper < lower)) return none;
  const sides: number[] = [];
  if (upper !== null) sides.push((upper - mean) / (3 * standardDeviation));
  if (lower !== null) sides.push((mean - lower) / (3 * standardDeviation));
  return {
    index: lower === null || upper === null ? null : finite((upper - lower) / (6 * standardDeviation)),
    centred: sides.length === 0 ? null : finite(Math.min(...sides)),
  };
}

/**
 * The limits of a check. With a nominal value, the threshold is the deviation that is allowed to either side. Without one, it
 * is the least value that passes.
 */
export function limitsOf(nominal: number | null, threshold: number | null): Limits {
  if (threshold === null) return { lower: null, upper: null };
  if (nominal === null) return { lower: threshold, upper: null };
  return { lower: finite(nominal - threshold), upper: finite(nominal + threshold) };
}

/** Null for what JSON has no number for. */
export function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
