import type { BenchReport } from "./result.js";
import { type Interval, mannWhitneyP, median, ratioOfMediansInterval } from "./statistics.js";

/** A figure of this run beside the same one of a saved run. */
export interface ComparisonRow {
  benchmark: string;
  contestant: string;
  /** The metric itself, or `/ <peer>`: the ratio within each run, which forgives a machine that was busier as a whole. */
  figure: string;
  unit: string;
  saved: number;
  now: number;
  /** now / saved, of medians. */
  ratio: number;
  interval: Interval;
  pValue: number;
  verdict: "better" | "worse" | "within noise" | "too few rounds";
}

export interface Comparison {
  source: string;
  rows: ComparisonRow[];
  /** What makes the two runs hard to compare. */
  warnings: string[];
}

const CONFIDENCE = 0.99;

/** Two-sided p of two samples that do not overlap at all: the smallest a rank test can give. */
function smallestP(n: number, m: number): number {
  let orderings = 1;
  for (let i = 1; i <= n; i++) orderings = (orderings * (m + i)) / i;
  return 2 / orderings;
}

/**
 * A difference is called one only when the bootstrap interval of the ratio of medians excludes 1 and the ranks say so as well: the
 * bootstrap alone is too sure of itself with few rounds, the ranks alone do not look at the size.
 */
function compareSamples(
  saved: readonly number[],
  now: readonly number[],
  better: "higher" | "lower",
): Pick<ComparisonRow, "interval" | "now" | "pValue" | "ratio" | "saved" | "verdict"> {
  const interval = ratioOfMediansInterval(now, saved, { confidence: CONFIDENCE });
  const pValue = mannWhitneyP(now, saved);
  const ratio = median(now) / median(saved);
  const differs = (interval.low > 1 || interval.high < 1) && pValue < 1 - CONFIDENCE;
  return {
    saved: median(saved),
    now: median(now),
    ratio,
    interval,
    pValue,
    verdict:
      smallestP(now.length, saved.length) >= 1 - CONFIDENCE
        ? "too few rounds"
        : !differs
          ? "within noise"
          : ratio > 1 === (better === "higher")
            ? "better"
            : "worse",
  };
}

export function compareReports(now: BenchReport, saved: BenchReport, source: string): Comparison {
  const warnings: string[] = [];
  const mustAgree: [what: string, now: unknown, saved: unknown][] = [
    ["size", now.size, saved.size],
    ["CPU", now.machine.cpuModel, saved.machine.cpuModel],
    ["number of cores", now.machine.cpuCount, saved.machine.cpuCount],
    ["kernel", now.machine.kernel, saved.machine.kernel],
    ["Node version", now.machine.nodeVersion, saved.machine.nodeVersion],
    ["file system", now.machine.fileSystem, saved.machine.fileSystem],
  ];
  for (const [what, here, there] of mustAgree) {
    if (here !== there) warnings.push(`${what} differs: ${here} now, ${there} in the saved run`);
  }
  const rows: ComparisonRow[] = [];
  for (const benchmark of now.benchmarks) {
    const former = saved.benchmarks.find(({ name }) => name === benchmark.name);
    if (former === undefined || former.error !== null || benchmark.error !== null) {
      warnings.push(`${benchmark.name} did not run in both`);
      continue;
    }
    const dropsRounds = (result: typeof benchmark): boolean =>
      result.contestants.some(
        ({ rounds, disturbed }) =>
          disturbed !== undefined || rounds.some(({ stolenShare }) => stolenShare !== undefined),
      );
    if (dropsRounds(benchmark) !== dropsRounds(former)) {
      warnings.push(
        `${benchmark.name}: only one of the two has measured rounds again in which the host took the cores`,
      );
    }
    const { better, unit, name } = benchmark.metric;
    const both = <T extends { contestant: string }>(here: T[], there: T[]): [T, T][] =>
      here.flatMap((row) => {
        const match = there.find(({ contestant }) => contestant === row.contestant);
        return match === undefined ? [] : [[row, match] as [T, T]];
      });
    const raw = (result: typeof benchmark): { contestant: string; values: number[] }[] =>
      result.contestants.map((c) => ({ contestant: c.name, values: c.rounds.map(({ value }) => value) }));
    for (const [here, there] of both(raw(benchmark), raw(former))) {
      const { contestant } = here;
      rows.push({
        benchmark: benchmark.name,
        contestant,
        figure: name,
        unit,
        ...compareSamples(there.values, here.values, better),
      });
    }
    for (const [here, there] of both(benchmark.pairs, former.pairs)) {
      if (here.peer !== there.peer) continue;
      rows.push({
        benchmark: benchmark.name,
        contestant: here.contestant,
        figure: `/ ${here.peer}`,
        unit: "",
        ...compareSamples(there.ratios, here.ratios, better),
      });
    }
  }
  return { source, rows, warnings };
}
