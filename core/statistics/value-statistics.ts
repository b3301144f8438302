/**
 * Mean, spread and quantiles of values. The sums are compensated, so that a million values lose no digits.
 *
 * - mean m = Σ x / n
 * - standard deviation s = √(Σ (x − m)² / (n − 1))
 * - mean moving range MR = Σ |x(i) − x(i−1)| / (n − 1), over successive values
 * - quantile q: the values sorted as x(0) … x(n−1), linear between the two at (n − 1) q. It is what numpy calls `linear`,
 *   and Hyndman and Fan (1996) type 7. The median is the quantile 0.5.
 *
 * No sum overflows into a wrong number: where one exceeds the largest double, the result is infinite or NaN. Callers
 * show that as null.
 */

/** Sum of the values from `start` to `end`, by Neumaier's variant of Kahan's summation (1974). */
export function sumOf(values: Float64Array, start = 0, end = values.length): number {
  let sum = 0;
  let lost = 0;
  for (let at = start; at < end; at++) {
    const value = values[at] as number;
    const next = sum + value;
    lost += Math.abs(sum) >= Math.abs(value) ? sum - next + value : value - next + sum;
    sum = next;
  }
  return sum + lost;
}

/** NaN without values. */
export function meanOf(values: Float64Array, start = 0, end = values.length): number {
  return sumOf(values, start, end) / (end - start);
}

/** With n − 1. NaN for fewer than two values. */
export function standardDeviationOf(values: Float64Array, mean: number): number {
  const n = values.length;
  if (n < 2) return Number.NaN;
  let squares = 0;
  let lost = 0;
  for (let at = 0; at < n; at++) {
    const deviation = (values[at] as number) - mean;
    const square = deviation * deviation - lost;
    const next = squares + square;
    lost = next - squares - square;
    squares = next;
  }
  return Math.sqrt(squares / (n - 1));
}

/** Mean of the ranges of two successive values. NaN for fewer than two values. */
export function meanMovingRangeOf(values: Float64Array): number {
  const n = values.length;
  if (n < 2) return Number.NaN;
  let sum = 0;
  let lost = 0;
  for (let at = 1; at < n; at++) {
    const range = Math.abs((values[at] as number) - (values[at - 1] as number)) - lost;
    const next = sum + range;
    lost = next - sum - range;
    sum = next;
  }
  return sum / (n - 1);
}

/** Smallest and largest of the values from `start` to `end`; infinite without values. */
export function rangeOf(values: Float64Array, start = 0, end = values.length): { minimum: number; maximum: number } {
  let minimum = Number.POSITIVE_INFINITY;
  let maximum = Number.NEGATIVE_INFINITY;
  for (let at = start; at < end; at++) {
    const value = values[at] as number;
    if (value < minimum) minimum = value;
    if (value > maximum) maximum = value;
  }
  return { minimum, maximum };
}

/** The quantile of at least one value. It changes the order of the values. @param share 0 to 1 */
export function quantileOf(values: Float64Array, share: number): number {
  const last = values.length - 1;
  const place = last * share;
  const low = Math.min(last, Math.floor(place));
  const below = select(values, low);
  if (low === place || low === last) return below;
  // All after `low` are at least as large: the next one is the least of them.
  const above = rangeOf(values, low + 1).minimum;
  const fraction = place - low;
  return below + (above - below) * fraction;
}

/**
 * Puts the value that would be at `wanted` if the values were sorted at that place, smaller ones before it and larger ones
 * after it (Hoare's quickselect). It takes O(n): where the pivots turn out badly, it sorts what is left.
 */
function select(values: Float64Array, wanted: number): number {
  let low = 0;
  let high = values.length - 1;
  let pivots = 2 * Math.ceil(Math.log2(values.length + 1));
  while (high > low) {
    if (pivots-- === 0) {
      values.subarray(low, high + 1).sort();
      break;
    }
    const pivot = medianOfThree(values[low] as number, values[(low + high) >>> 1] as number, values[high] as number);
    let left = low;
    let right = high;
    while (left <= right) {
      while ((values[left] as number) < pivot) left++;
      while ((values[right] as number) > pivot) right--;
      if (left > right) break;
      const value = values[left] as number;
      values[left++] = values[right] as number;
      values[right--] = value;
    }
    if (wanted <= right) high = right;
    else if (wanted >= left) low = left;
    else break;
  }
  return values[wanted] as number;
}

function medianOfThree(a: number, b: number, c: number): number {
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
}
