import type { Benchmark, Goal } from "./benchmark.js";
import { mergeLatencies } from "./latency-histogram.js";
import type { BenchmarkResult, ContestantResult, GoalResult, MeasuredBenchmark, PairResult } from "./result.js";
import type { ContestantRounds } from "./rounds.js";
import { describeSpread, median, medianInterval } from "./statistics.js";

function valuesOf(rounds: ContestantRounds): number[] {
  return rounds.rounds.map((sample) => sample.value);
}

/** Round i of one contestant divided by round i of its peer: what both met alike cancels. */
function ratiosOf(contestant: ContestantRounds, peer: ContestantRounds): number[] {
  const peerValues = valuesOf(peer);
  return valuesOf(contestant).map((value, round) => value / (peerValues[round] as number));
}

function summarizeContestant(rounds: ContestantRounds, description: string): ContestantResult {
  const details: Record<string, number> = {};
  for (const key of new Set(rounds.rounds.flatMap((sample) => Object.keys(sample.details ?? {})))) {
    details[key] = median(rounds.rounds.flatMap((sample) => sample.details?.[key] ?? []));
  }
  const warnings = new Map<string, number>();
  for (const text of rounds.rounds.flatMap((sample) => sample.warnings ?? [])) {
    warnings.set(text, (warnings.get(text) ?? 0) + 1);
  }
  const latencies = rounds.rounds.flatMap((sample) => sample.latency ?? []);
  return {
    ...rounds,
    description,
    spread: describeSpread(valuesOf(rounds)),
    ...(latencies.length > 0 ? { latency: mergeLatencies(latencies).summarize() } : {}),
    details,
    warnings: [...warnings].map(([text, count]) => ({ text, rounds: count })),
  };
}

export function judgeGoal(goal: Goal, values: readonly number[]): GoalResult {
  const target = goal.kind === "ratio" ? goal.ratio : goal.value;
  const spread = describeSpread(values);
  const interval = medianInterval(values);
  const sign = goal.direction === "at-least" ? 1 : -1;
  return {
    goal,
    values: [...values],
    spread,
    interval,
    met: sign * (spread.median - target) >= 0,
    clear: interval.confidence >= 0.9 && (interval.low > target || interval.high < target),
    margin: (sign * (spread.median - target)) / target,
  };
}

function find(measured: MeasuredBenchmark, name: string): ContestantRounds {
  const found = measured.contestants.find((contestant) => contestant.name === name);
  if (found === undefined) throw new Error(`${measured.name}: nothing was measured for ${name}`);
  return found;
}

/** Computes spreads, pair ratios and verdicts from what a benchmark's process measured. */
export function summarizeBenchmark(benchmark: Benchmark, measured: MeasuredBenchmark): BenchmarkResult {
  const { missing } = measured;
  const takesPart = (name: string): boolean => !missing.some((absent) => absent.name === name);
  const contestants = benchmark.contestants.filter(({ name }) => takesPart(name));
  const peer = benchmark.peer === null || !takesPart(benchmark.peer) ? null : find(measured, benchmark.peer);
  const pairs = peer === null ? [] : contestants.filter(({ name }) => name !== peer.name);
  const isJudged = (goal: Goal): boolean =>
    takesPart(goal.contestant) && (goal.kind === "value" || takesPart(goal.peer));
  const unjudged = benchmark.goals.filter((goal) => !isJudged(goal));
  return {
    name: benchmark.name,
    measures: benchmark.measures,
    metric: benchmark.metric,
    startedAt: measured.startedAt,
    seconds: measured.seconds,
    notes: measured.notes,
    error: null,
    contestants: contestants.map(({ name, description }) => summarizeContestant(find(measured, name), description)),
    ...(missing.length > 0 ? { missing } : {}),
    ...(unjudged.length > 0 ? { unjudged } : {}),
    pairs: pairs.map(({ name }): PairResult => {
      const ratios = ratiosOf(find(measured, name), peer as ContestantRounds);
      return {
        contestant: name,
        peer: (peer as ContestantRounds).name,
        ratios,
        spread: describeSpread(ratios),
        interval: medianInterval(ratios),
      };
    }),
    goals: benchmark.goals.filter(isJudged).map((goal) => {
      const contestant = find(measured, goal.contestant);
      return judgeGoal(
        goal,
        goal.kind === "ratio" ? ratiosOf(contestant, find(measured, goal.peer)) : valuesOf(contestant),
      );
    }),
  };
}

/** The result of a benchmark that could not be run. */
export function failedBenchmark(
  benchmark: Benchmark,
  startedAt: string,
  seconds: number,
  error: string,
): BenchmarkResult {
  const { name, measures, metric } = benchmark;
  return { name, measures, metric, startedAt, seconds, notes: [], error, contestants: [], pairs: [], goals: [] };
}
