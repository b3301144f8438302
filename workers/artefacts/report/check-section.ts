import { deviationOf, deviationSpan } from "../../../core/run/deviation-span.js";
import type { CheckStatus, QualityCheck } from "../../../core/run/quality.js";
import type { RunState } from "../../../core/run/run-state.js";
import { fixed, plain, shown, signed } from "./page-text.js";

/** What a reader looks for first comes first. */
const WORDS: Readonly<Record<CheckStatus, string>> = {
  failed: "Failed",
  error: "Error",
  not_evaluated: "Not evaluated",
  warning: "Warning",
  passed: "Passed",
};
const ORDER = Object.keys(WORDS);

const HEAD = `<table class="checks"><colgroup><col style="width:19mm"><col><col style="width:29mm"><col style="width:28mm">\
<col style="width:20mm"><col style="width:20mm"><col style="width:20mm"></colgroup><thead><tr>\
<th scope="col">Outcome</th><th scope="col">Check</th><th scope="col">Within tolerance</th><th scope="col" class="number">Value</th>\
<th scope="col" class="number">Nominal</th><th scope="col" class="number">Deviation</th><th scope="col" class="number">Allowed</th>\
</tr></thead><tbody>\n`;

/** Checks with a bar each: failed ones first, else in the order in which they were reported. */
export function* checkSection({ checks, status }: RunState): Generator<string, void> {
  yield `<h2>Checks</h2>\n`;
  if (checks.length === 0) {
    yield `<p>${status === "completed" ? "This run made no checks." : "No checks were made."}</p>\n`;
    return;
  }
  const counts = ORDER.map((one) => [one, checks.filter((check) => check.status === one).length] as const);
  const parts = counts.filter(([, count]) => count > 0).map(([one, count]) => `${count} ${wordOf(one).toLowerCase()}`);
  yield `<p>${checks.length === 1 ? "1 check" : `${checks.length} checks`}: ${parts.join(", ")}.</p>\n`;
  yield HEAD;
  for (const one of ORDER) for (const check of checks) if (check.status === one) yield row(check);
  yield `</tbody></table>\n`;
}

function wordOf(status: string): string {
  return WORDS[status as CheckStatus];
}

function row(check: QualityCheck): string {
  const { status, name, message, value, nominal, threshold } = check;
  const isLength = (check.canonical_units ?? "mm") === "mm";
  const decimals = decimalsOf(threshold);
  const number = (one: number | null | undefined): string =>
    one === null || one === undefined ? "" : isLength ? fixed(one, decimals) : plain(one);
  const hasNumber = [value, nominal, threshold].some((one) => one !== null && one !== undefined);
  const allowed = number(threshold);
  const sign = nominal === null || nominal === undefined ? "≥ " : "± ";
  const note = message ? `<br><span class="note">${shown(message)}</span>` : "";
  const shownValue = number(value) || "–";
  return (
    `<tr><td class="status-${status}">${wordOf(status)}</td><th scope="row">${shown(name)}${note}</th><td>${bar(check)}</td>` +
    `<td class="number">${shownValue}${isLength && hasNumber ? " mm" : ""}</td><td class="number">${number(nominal)}</td>` +
    `<td class="number">${signed(number(deviationOf(check)))}</td><td class="number">${allowed && sign + allowed}</td></tr>\n`
  );
}

/** Decimals that show a tenth of the tolerance's last digit. */
function decimalsOf(threshold: number | null | undefined): number {
  const fine = threshold ? Math.ceil(-Math.log10(Math.abs(threshold))) + 2 : 3;
  return Math.min(6, Math.max(3, fine));
}

/** Units of the bar's drawing. */
const WIDTH = 100;
const HEIGHT = 10;

/** The tolerance as a zone, a line at the nominal value, and the value: a dot, or an arrow if it lies beyond the bar. */
function bar(check: QualityCheck): string {
  const span = deviationSpan(check);
  if (span === undefined) return "–";
  const x = (share: number): string => String(Number((share * WIDTH).toFixed(2)));
  const { status } = check;
  const tone = status === "failed" ? "fail" : status === "passed" || status === "warning" ? "pass" : "doubt";
  const line =
    span.nominal === undefined
      ? ""
      : `<path class="nominal" d="M${x(span.nominal)} 0V${HEIGHT}" vector-effect="non-scaling-stroke"/>`;
  const [tip, side] = span.value < 0.5 ? [0, 7] : [WIDTH, WIDTH - 7];
  const mark = span.isBeyond
    ? `<path class="value-${tone}" d="M${tip} 5L${side} 1V9Z"/>`
    : `<rect class="value-${tone}" x="${x(span.value - 0.015)}" y="1" width="3" height="8"/>`;
  return (
    `<svg class="bar" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true">` +
    `<rect class="zone" x="${x(span.low)}" y="2.5" width="${x(span.high - span.low)}" height="5"/>${line}${mark}</svg>`
  );
}
