import { capabilityOf, D2_OF_TWO, finite, type Limits } from "./capability.js";
import { type Histogram, histogramOf } from "./histogram.js";
import type { RunningValues } from "./running-values.js";
import type { SortedValues } from "./sorted-values.js";

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

/** The figures of one check, whose values are both in their order and sorted. */
export function checkFigures(running: RunningValues, sorted: SortedValues, limits: Limits): CheckFigures {
  const all = running.all();
  if (all.count === 0) return NOTHING;
  const { mean, standardDeviation, minimum, maximum } = all;
  const short = capabilityOf(mean, running.meanMovingRange / D2_OF_TWO, limits);
  const long = capabilityOf(mean, standardDeviation, limits);
  return {
    mean: finite(mean),
    standard_deviation: finite(standardDeviation),
    ...{ minimum, maximum },
    median: finite(sorted.quantile(0.5)),
    cp: short.index,
    cpk: short.centred,
    pp: long.index,
    ppk: long.centred,
    histogram: histogramOf(sorted, all),
  };
}
