import type { SortedValues } from "./sorted-values.js";

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
  sorted: SortedValues,
  { minimum, maximum }: { minimum: number; maximum: number },
): Histogram | null {
  const first = minimum === maximum ? minimum - 0.5 : minimum;
  const last = minimum === maximum ? maximum + 0.5 : maximum;
  const width = (2 * (sorted.quantile(0.75) - sorted.quantile(0.25))) / Math.cbrt(sorted.count);
  const wanted = Math.ceil((last - first) / width);
  // Without a width, as with three quarters of the values equal, the least number of bins has to do.
  const bins = Number.isFinite(wanted) ? Math.min(MOST_BINS, Math.max(LEAST_BINS, wanted)) : LEAST_BINS;
  const step = (last - first) / bins;
  const edges = Array.from({ length: bins + 1 }, (_, at) => (at === bins ? last : first + at * step));
  if (!Number.isFinite(step) || edges.some((edge, at) => at > 0 && !(edge > (edges[at - 1] as number)))) return null;
  const below = edges.map((edge, at) => (at === bins ? sorted.count : sorted.countBelow(edge)));
  return { edges, counts: below.slice(1).map((end, at) => end - (below[at] as number)) };
}
