/** Bounds of the colours, in mm. */
export interface HeightRange {
  readonly low: number;
  readonly high: number;
}

/** This many values give the percentiles of a surface precisely enough. To sort all values would take a tenth of a second. */
const SAMPLED_VALUES = 200_000;

/** Measured heights of an overview in rising order, evenly sampled where there are many. Empty if nothing was measured. */
export function sortedHeights(zMm: Float32Array): Float32Array {
  const step = Math.max(1, Math.ceil(zMm.length / SAMPLED_VALUES));
  const kept = new Float32Array(Math.ceil(zMm.length / step));
  let count = 0;
  for (let at = 0; at < zMm.length; at += step) {
    const z = zMm[at] as number;
    if (!Number.isNaN(z)) kept[count++] = z;
  }
  return kept.subarray(0, count).sort();
}

/** As numpy.percentile does it: linear between the two values that the share lies between. */
export function percentile(sorted: Float32Array, percent: number): number {
  const place = (percent / 100) * (sorted.length - 1);
  const at = Math.floor(place);
  const value = sorted[at] as number;
  const next = sorted[Math.min(at + 1, sorted.length - 1)] as number;
  return value + (place - at) * (next - value);
}

/** From the `percent`th to the (100 - `percent`)th percentile; undefined if nothing was measured. */
export function percentileRange(sorted: Float32Array, percent: number): HeightRange | undefined {
  if (sorted.length === 0) return undefined;
  return { low: percentile(sorted, percent), high: percentile(sorted, 100 - percent) };
}

/** The same for differences: both bounds are equally far from 0, so that 0 is in the middle of the colours. */
export function symmetricRange(sorted: Float32Array, percent: number): HeightRange | undefined {
  const range = percentileRange(sorted, percent);
  if (range === undefined) return undefined;
  const high = Math.max(Math.abs(range.low), Math.abs(range.high));
  return { low: -high, high };
}

/** How many of the sorted heights lie in each of `bins` equal parts of the range. */
export function histogram(sorted: Float32Array, range: HeightRange, bins: number): number[] {
  const counts = new Array<number>(bins).fill(0);
  const size = (range.high - range.low) / bins;
  if (!(size > 0)) return counts;
  for (const z of sorted) {
    if (z < range.low || z > range.high) continue;
    const bin = Math.min(bins - 1, Math.floor((z - range.low) / size));
    counts[bin] = (counts[bin] as number) + 1;
  }
  return counts;
}

/** Round numbers within the range, at most about `count` of them: 1, 2 or 5 times a power of ten apart. */
export function roundTicks({ low, high }: HeightRange, count: number): number[] {
  if (!(high > low)) return [low];
  const least = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= least) ?? 10) * power;
  const ticks: number[] = [];
  for (let n = Math.ceil(low / step); n * step <= high; n++) ticks.push(n * step);
  return ticks;
}

/** How many decimals tell heights apart that differ by one of 1,000 parts of the range: at least micrometres. */
export function decimalsFor({ low, high }: HeightRange): number {
  const part = (high - low) / 1000;
  return part > 0 ? Math.min(7, Math.max(3, Math.ceil(-Math.log10(part)))) : 3;
}
