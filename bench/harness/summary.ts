import type { Benchmark, Goal } from "./benchmark.js";
import type { BenchmarkResult } from "./result.js";
import type { ContestantRounds } from "./rounds.js";
import { describeSpread, type Interval, medianInterval, type Spread } from "./statistics.js";

/** The figures of all rounds, with their median and its interval. */
export interface Figure {
  values: number[];
  spread: Spread;
  interval: Interval;
}

export interface GoalVerdict extends Figure {
  goal: Goal;
  met: boolean;
  /** False when the interval lies on both sides of the goal: more rounds may change the verdict. */
  isClear: boolean;
  /** How far the median is beyond (positive) or short of (negative) the goal, as a share of the goal. */
  margin: number;
}

function roundsOf(result: BenchmarkResult, name: string): ContestantRounds | undefined {
  return result.contestants.find((contestant) => contestant.name === name);
}

function figureOf(values: number[]): Figure {
  return { values, spread: describeSpread(values), interval: medianInterval(values) };
}

/**
 * A contestant's figure in each round; if there is a peer, the ratio to it, which cancels what disturbs both alike. Undefined if one of the two
 * was not measured.
 */
export function figure(result: BenchmarkResult, contestant: string, peer?: string): Figure | undefined {
  const own = roundsOf(result, contestant);
  const other = peer === undefined ? own : roundsOf(result, peer);
  if (own === undefined || other === undefined) return undefined;
  const values = own.rounds.map(({ value }) => value);
  if (peer === undefined) return figureOf(values);
  return figureOf(values.map((value, round) => value / (other.rounds[round]?.value as number)));
}

/** Which contestants the report compares: each with the peer, and the pairs of the goals. */
export function pairsOf({ contestants, peer, goals }: Benchmark): [contestant: string, peer: string][] {
  const pairs = new Map<string, [string, string]>();
  const add = (contestant: string, other: string | null | undefined): void => {
    if (other !== null && other !== undefined && other !== contestant) {
      pairs.set(`${contestant} / ${other}`, [contestant, other]);
    }
  };
  for (const { name } of contestants) add(name, peer);
  for (const goal of goals) add(goal.contestant, goal.peer);
  return [...pairs.values()];
}

/** Undefined when a contestant that the goal needs was not measured. */
export function judgeGoal(goal: Goal, result: BenchmarkResult): GoalVerdict | undefined {
  const judged = figure(result, goal.contestant, goal.peer);
  if (judged === undefined) return undefined;
  const { spread, interval } = judged;
  const { target } = goal;
  const sign = goal.direction === "at-least" ? 1 : -1;
  return {
    ...judged,
    goal,
    met: sign * (spread.median - target) >= 0,
    isClear: interval.confidence >= 0.9 && (interval.low > target || interval.high < target),
    margin: (sign * (spread.median - target)) / target,
  };
}
