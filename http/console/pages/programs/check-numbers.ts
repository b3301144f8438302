/** The numbers of a check as the charts name and write them. */

import type { Statistics } from "../../data/api.js";
import { fixed, inUnit, lengthDecimals, plain } from "../../data/units.js";
import type { PlotLine } from "../../ui/charts/plot.js";
import { checkNumber } from "../../ui/values.js";

export type CheckStatistics = Statistics["checks"][number];

export function isLength({ canonical_units: units }: CheckStatistics): boolean {
  return units === "mm";
}

export function numberTextOf(check: CheckStatistics): (value: number) => string {
  const { nominal, upper_limit: upper } = check;
  const decimals = lengthDecimals(nominal === null || upper === null ? null : upper - nominal);
  return (value) => checkNumber(value, isLength(check), decimals);
}

/** With three significant figures: a small spread has none left in the decimals of the values. */
export function spreadText(check: CheckStatistics, spread: number): string {
  const shown = isLength(check) ? inUnit(spread) : spread;
  // Smaller and larger ones are written with an exponent.
  if (!(shown >= 1e-9 && shown < 1e9)) return plain(shown);
  return fixed(shown, Math.max(0, 2 - Math.floor(Math.log10(shown))));
}

/** The limits of the specification, the lower one first, and the nominal value. */
export function specificationLines({ lower_limit: lower, upper_limit: upper, nominal }: CheckStatistics): PlotLine[] {
  const lines: PlotLine[] = [];
  if (lower !== null) lines.push({ name: "LSL", value: lower, kind: "limit" });
  if (upper !== null) lines.push({ name: "USL", value: upper, kind: "limit" });
  if (nominal !== null) lines.push({ name: "Nominal", value: nominal, kind: "centre" });
  return lines;
}
