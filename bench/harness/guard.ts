/**
 * `--guard`: is a figure surely worse than in a saved run of the same machine?
 *
 * The rule: each run has an interval that holds the true median with a probability of at least 95 % (`medianInterval`, from 6 rounds on). A
 * figure is surely worse, or better, if the two intervals lie apart by more than a gap. The gap is 10 % for a ratio to the benchmark's peer,
 * and 30 % for a figure without a peer. It is larger there because a machine is faster on some days: a ratio cancels that, a single figure
 * does not.
 */
import type { Benchmark } from "./benchmark.js";
import type { Machine } from "./machine.js";
import type { BenchmarkResult, BenchRun } from "./result.js";
import type { Interval } from "./statistics.js";
import { figure } from "./summary.js";

export const LEAST_ROUNDS = 6;
export const GAPS = { ratio: 0.1, alone: 0.3 } as const;

/** Nothing was judged. The message says what the caller has to change. */
export class UseError extends Error {}

export type GuardVerdict = "worse" | "better" | "same" | "unknown";

/** A figure of this run beside the same one of the saved run. */
export interface GuardRow {
  benchmark: string;
  /** The contestant, with ` / <peer>` where it is a ratio. */
  figure: string;
  unit: string;
  /** Medians; NaN where it was not measured. */
  saved: number;
  now: number;
  verdict: GuardVerdict;
  /** The reason for `unknown`. */
  why?: string;
}

const SAME_MACHINE = ["cpuModel", "cpuCount", "memoryBytes", "kernel", "nodeVersion", "fileSystem"] as const;

/** Throws a UseError if the saved run says nothing about these benchmarks on this machine. Called before anything is measured. */
export function checkSavedRun(
  saved: BenchRun,
  now: Pick<BenchRun, "size"> & { machine: Pick<Machine, (typeof SAME_MACHINE)[number]> },
  chosen: readonly Benchmark[],
): void {
  for (const field of SAME_MACHINE) {
    const [here, there] = [now.machine[field], saved.machine[field]];
    if (here !== there) {
      throw new UseError(`the saved run is of another machine: ${field} was ${there} and is ${here}`);
    }
  }
  if (saved.size !== now.size) throw new UseError(`the saved run has size ${saved.size}, this one ${now.size}`);
  for (const { name, metric } of chosen) {
    const former = saved.benchmarks.find((result) => result.name === name);
    if (former === undefined) throw new UseError(`the saved run has no ${name}: save a run that has it`);
    if (former.error !== null) throw new UseError(`${name} did not run in the saved run: ${former.error}`);
    if (former.metric.name !== metric.name || former.metric.unit !== metric.unit) {
      throw new UseError(`${name} was ${former.metric.name} in ${former.metric.unit}: save a run of today's`);
    }
  }
}

/** Whether what was measured now has surely become worse or better. Both intervals must be positive. */
export function judgeChange(saved: Interval, now: Interval, better: "higher" | "lower", gap: number): GuardVerdict {
  const isHigher = now.low > saved.high * (1 + gap);
  const isLower = now.high * (1 + gap) < saved.low;
  if (!isHigher && !isLower) return "same";
  return isHigher === (better === "higher") ? "better" : "worse";
}

/** All figures of the service: ratios to the benchmark's peer where both runs have it. */
export function guardBenchmark(benchmark: Benchmark, saved: BenchmarkResult, now: BenchmarkResult): GuardRow[] {
  const { name, metric, contestants, peer } = benchmark;
  if (now.error !== null) {
    const why = `it did not run: ${now.error.split("\n")[0]}`;
    return [{ benchmark: name, figure: metric.name, unit: "", saved: NaN, now: NaN, verdict: "worse", why }];
  }
  const hasPeer = [saved, now].every((result) => result.contestants.some((contestant) => contestant.name === peer));
  const divisor = hasPeer ? (peer ?? undefined) : undefined;
  const rows: GuardRow[] = [];
  for (const contestant of contestants) {
    if (contestant.name === peer) continue;
    const [there, here] = [figure(saved, contestant.name, divisor), figure(now, contestant.name, divisor)];
    // Neither run has it: it cannot be measured on this machine, as the report says.
    if (there === undefined && here === undefined) continue;
    const row = {
      benchmark: name,
      figure: divisor === undefined ? contestant.name : `${contestant.name} / ${divisor}`,
      unit: divisor === undefined ? metric.unit : "",
      saved: there?.spread.median ?? NaN,
      now: here?.spread.median ?? NaN,
    };
    if (there === undefined || here === undefined) {
      rows.push({ ...row, verdict: "unknown", why: `not measured ${here === undefined ? "now" : "in the saved run"}` });
    } else if (Math.min(there.values.length, here.values.length) < LEAST_ROUNDS) {
      rows.push({ ...row, verdict: "unknown", why: `fewer than ${LEAST_ROUNDS} rounds` });
    } else {
      const gap = divisor === undefined ? GAPS.alone : GAPS.ratio;
      rows.push({ ...row, verdict: judgeChange(there.interval, here.interval, metric.better, gap) });
    }
  }
  return rows;
}

/** 1: something is surely worse. 2: nothing is worse, but some figures could not be judged. 0: otherwise. */
export function guardExitCode(rows: readonly GuardRow[]): 0 | 1 | 2 {
  if (rows.some(({ verdict }) => verdict === "worse")) return 1;
  return rows.some(({ verdict }) => verdict === "unknown") ? 2 : 0;
}
