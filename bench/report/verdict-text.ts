import type { Goal } from "../harness/benchmark.js";
import type { GoalResult } from "../harness/result.js";
import { formatFigure, formatPercent, formatRatio } from "./number-format.js";

/** What the goal asks for, in words. */
export function describeGoal(goal: Goal, unit: string): string {
  const bound = goal.direction === "at-least" ? "at least" : "at most";
  return goal.kind === "ratio"
    ? `${goal.contestant} / ${goal.peer} ${bound} ${formatRatio(goal.ratio)}`
    : `${goal.contestant} ${bound} ${formatFigure(goal.value)} ${unit}`;
}

/** Met or missed, by how much, and how sure that is. */
export function describeVerdict(result: GoalResult, unit: string): string {
  const { goal, spread, interval, met, clear, margin } = result;
  const figure = goal.kind === "ratio" ? formatRatio : formatFigure;
  const suffix = goal.kind === "ratio" ? "" : ` ${unit}`;
  const share = formatPercent(Math.abs(margin));
  const sure = clear
    ? ""
    : spread.count < 6
      ? "; too few rounds to be sure"
      : "; within the noise of this run: more rounds may turn it";
  return (
    `${met ? `met, ${share} beyond the goal` : `MISSED by ${share}`}: median ${figure(spread.median)}${suffix}, ` +
    `${(interval.confidence * 100).toFixed(0)} % interval ${figure(interval.low)} to ${figure(interval.high)}${sure}`
  );
}
