import { D2_OF_TWO } from "../../../../core/statistics/capability.js";
import { RunningValues } from "../../../../core/statistics/running-values.js";

interface ControlLimits {
  mean: number;
  lower: number;
  upper: number;
}

/**
 * Limits of a chart of individual values: mean ± 2.66 × mean moving range of two (3 / 1.128; AIAG SPC, NIST e-Handbook 6.3.2.2).
 * @param values in the order in which they were measured @returns undefined for fewer than two
 */
export function controlLimitsOf(values: readonly number[]): ControlLimits | undefined {
  if (values.length < 2) return undefined;
  const running = new RunningValues();
  for (const value of values) running.add(value, 0, false, 1);
  const { mean } = running.all();
  const reach = (3 / D2_OF_TWO) * running.meanMovingRange;
  const limits = { mean, lower: mean - reach, upper: mean + reach };
  return Object.values(limits).every(Number.isFinite) ? limits : undefined;
}
