/**
 * A histogram whose bins are as wide as Freedman and Diaconis (1981) say: 2 IQR / ∛n, where IQR is the distance of the quartiles.
 * There are at least 5 bins and at most 50. Each bin has its lower edge and not its upper one; the last has both. If all
 * values are equal, the edges are half a unit to either side. Edges and counts are those of `numpy.histogram`.
 */
export interface Histogram {
  /** n + 1 numbers, ascending. */
  readonly edges: readonly number[];
  /** n numbers. */
  readonly counts: readonly number[];
}

const LEAST_BINS = 5;
const MOST_BINS = 50;

/** Null if the values lie so far apart, or are so large, that there are no edges between them. */
export function histogramOf(
  values: Float64Array,
  { minimum, maximum }: { minimum: number; maximum: number },
  interquartileRange: number,
): Histogram | null {
  const first = minimum === maximum ? minimum - 0.5 : minimum;
  const last = minimum === maximum ? maximum + 0.5 : maximum;
  const width = (2 * interquartileRange) / Math.cbrt(values.length);
  const wanted = Math.ceil((last - first) / width);
  // Without a width, as with three quarters of the values equal, the least number of bins has to do.
  const bins = Number.isFinite(wanted) ? Math.min(MOST_BINS, Math.max(LEAST_BINS, wanted)) : LEAST_BINS;
  const step = (last - first) / bins;
  const edges = Float64Array.from({ length: bins + 1 }, (_, at) => (at === bins ? last : first + at * step));
  if (!Number.isFinite(step) || edges.some((edge, at) => at > 0 && !(edge > (edges[at - 1] as number)))) return null;
  const counts = new Float64Array(bins);
  const perUnit = bins / (last - first);
  for (let at = 0; at < values.length; at++) {
    const value = values[at] as number;
    let bin = Math.min(bins - 1, Math.floor((value - first) * perUnit));
    // The division may round to the other side of an edge.
    if (value < (edges[bin] as number)) bin--;
    else if (bin < bins - 1 && value >= (edges[bin + 1] as number)) bin++;
    counts[bin] = (counts[bin] as number) + 1;
  }
  return { edges: [...edges], counts: [...counts] };
}
