import type { Comparison } from "../harness/comparison.js";
import { mergeLatencies } from "../harness/latency-histogram.js";
import type { BenchmarkResult, BenchReport } from "../harness/result.js";
import { formatFigure, formatMicroseconds, formatPercent, formatRatio } from "./number-format.js";
import { escapeHtml, latencyPlot, type StripRow, stripPlot } from "./svg-plots.js";
import { machineRows } from "./text-report.js";
import { describeGoal, describeVerdict } from "./verdict-text.js";

const STYLE = `
:root { color-scheme: light dark; --text: #1c2128; --soft: #59636e; --line: #d1d9e0; --page: #fff; --good: #1a7f37; --bad: #cf222e;
  --c0: #0969da; --c1: #bc4c00; --c2: #1a7f37; --c3: #8250df; --c4: #bf3989; --c5: #9a6700; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --soft: #9198a1; --line: #3d444d; --page: #0d1117; --good: #3fb950;
  --bad: #f85149; --c0: #58a6ff; --c1: #f0883e; --c2: #3fb950; --c3: #bc8cff; --c4: #f778ba; --c5: #d29922; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); max-width: 980px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.25em; margin-top: 2.2em; border-bottom: 1px solid var(--line); } h3 { font-size: 1em; margin: 1.4em 0 .3em; }
table { border-collapse: collapse; margin: .7em 0; font-variant-numeric: tabular-nums; } .wide { overflow-x: auto; }
th, td { padding: .2em .7em; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } th { color: var(--soft); font-weight: 600; } td.text { white-space: normal; text-align: left; }
svg { width: 100%; height: auto; } .soft { color: var(--soft); } .met { color: var(--good); } .missed { color: var(--bad); } pre { white-space: pre-wrap; }
.grid { stroke: var(--line); stroke-width: .6; } .axis { stroke: var(--soft); } .tick, .label { fill: var(--soft); font-size: 12px; }
.label { fill: var(--text); font-size: 13px; } .target { stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 5 3; }
.target-label { fill: var(--bad); font-size: 12px; } .whisker { stroke: var(--text); stroke-width: 2; }
.box { opacity: .22; } .dot { opacity: .75; } .median { stroke-width: 3; } .curve { fill: none; stroke-width: 2; }
${[0, 1, 2, 3, 4, 5].map((i) => `.box.s${i}, .dot.s${i} { fill: var(--c${i}); } .median.s${i}, .curve.s${i} { stroke: var(--c${i}); }`).join("\n")}
`;

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = (tag: string, row: readonly string[]): string =>
    `<tr>${row.map((cell) => `<${tag}>${escapeHtml(cell)}</${tag}>`).join("")}</tr>`;
  return `<div class="wide"><table><thead>${cells("th", header)}</thead><tbody>${rows.map((row) => cells("td", row)).join("")}</tbody></table></div>`;
}

function figures(result: BenchmarkResult): string {
  const { contestants, metric } = result;
  const values = table(
    ["contestant", `median ${metric.unit}`, "quartiles", "min to max", "MAD", "rounds"],
    contestants.map(({ name, spread }) => [
      name,
      formatFigure(spread.median),
      `${formatFigure(spread.lowerQuartile)} to ${formatFigure(spread.upperQuartile)}`,
      `${formatFigure(spread.minimum)} to ${formatFigure(spread.maximum)}`,
      formatPercent(spread.mad / spread.median),
      `${spread.count}`,
    ]),
  );
  const keys = [...new Set(contestants.flatMap(({ details }) => Object.keys(details)))];
  const hasLatency = contestants.some(({ latency }) => latency !== undefined);
  if (keys.length === 0 && !hasLatency) return values;
  const more = table(
    ["", ...(hasLatency ? ["p50", "p99", "p99.9", "max"] : []), ...keys],
    contestants.map(({ name, latency, details }) => [
      name,
      ...(hasLatency ? (["p50Us", "p99Us", "p999Us", "maximumUs"] as const) : []).map((key) =>
        latency === undefined ? "" : formatMicroseconds(latency[key]),
      ),
      ...keys.map((key) => (details[key] === undefined ? "" : formatFigure(details[key] as number))),
    ]),
  );
  return values + more;
}

function contestantFigures(result: BenchmarkResult): string {
  const { metric } = result;
  const valueGoal = result.goals.find(({ goal }) => goal.kind === "value")?.goal;
  return [
    figures(result),
    `<h3>${escapeHtml(metric.name)}, every round (${metric.better} is better)</h3>`,
    stripPlot(
      result.contestants.map(
        ({ name, rounds, spread }, series): StripRow => ({
          label: name,
          series,
          values: rounds.map((r) => r.value),
          spread,
        }),
      ),
      `${metric.name}, ${metric.unit}`,
      valueGoal?.kind === "value"
        ? { value: valueGoal.value, label: `goal ${formatFigure(valueGoal.value)}` }
        : undefined,
    ),
  ].join("\n");
}

function benchmarkSection(result: BenchmarkResult): string {
  const { metric } = result;
  const parts = [
    `<h2 id="${escapeHtml(result.name)}">${escapeHtml(result.name)}</h2>`,
    `<p>${escapeHtml(result.measures)}</p>`,
  ];
  if (result.error !== null)
    return [...parts, `<p class="missed">Did not run:</p><pre>${escapeHtml(result.error)}</pre>`].join("");
  parts.push(
    `<ul>${result.contestants.map((c) => `<li><b>${escapeHtml(c.name)}</b>: ${escapeHtml(c.description)}</li>`).join("")}</ul>`,
  );
  for (const goal of result.goals) {
    const text = `${describeGoal(goal.goal, metric.unit)}: ${describeVerdict(goal, metric.unit)}`;
    parts.push(
      `<p class="${goal.met ? "met" : "missed"}"><b>${escapeHtml(text)}</b> <span class="soft">(${escapeHtml(goal.goal.source)})</span></p>`,
    );
  }
  for (const { name, why } of result.missing ?? []) {
    parts.push(`<p class="missed">${escapeHtml(`${name} is missing: ${why}`)}</p>`);
  }
  for (const goal of result.unjudged ?? []) {
    parts.push(`<p>${escapeHtml(`not judged: ${describeGoal(goal, metric.unit)}`)}</p>`);
  }
  // Without any, all of them are missing.
  if (result.contestants.length > 0) parts.push(contestantFigures(result));
  if (result.pairs.length > 0) {
    const ratioGoal = result.goals.find(({ goal }) => goal.kind === "ratio")?.goal;
    parts.push(
      `<h3>Round by round against ${escapeHtml(result.pairs[0]?.peer ?? "")}</h3>`,
      stripPlot(
        result.pairs.map(
          ({ contestant, ratios, spread, interval }): StripRow => ({
            label: contestant,
            series: result.contestants.findIndex(({ name }) => name === contestant),
            values: ratios,
            spread,
            interval,
          }),
        ),
        "ratio; below the dots the interval of the median",
        ratioGoal?.kind === "ratio"
          ? { value: ratioGoal.ratio, label: `goal ${formatRatio(ratioGoal.ratio)}` }
          : { value: 1, label: "equal" },
      ),
    );
  }
  const latencies = result.contestants.flatMap(({ name, rounds }, series) => {
    const data = rounds.flatMap(({ latency }) => latency ?? []);
    return data.length === 0 ? [] : [{ label: name, series, data: mergeLatencies(data).toData() }];
  });
  if (latencies.length > 0) parts.push("<h3>Latency, all rounds together</h3>", latencyPlot(latencies));
  const remarks = [
    ...result.notes,
    ...result.contestants.flatMap(({ name, warnings }) =>
      warnings.map(({ text, rounds }) => `${name}, in ${rounds} rounds: ${text}`),
    ),
  ];
  if (remarks.length > 0)
    parts.push(`<ul class="soft">${remarks.map((text) => `<li>${escapeHtml(text)}</li>`).join("")}</ul>`);
  return parts.join("\n");
}

function comparisonSection(comparison: Comparison): string {
  return [
    `<h2>Compared with ${escapeHtml(comparison.source)}</h2>`,
    ...comparison.warnings.map((text) => `<p class="missed">${escapeHtml(text)}</p>`),
    table(
      ["benchmark", "contestant", "figure", "saved", "now", "now/saved", "99 % interval", "p", "verdict"],
      comparison.rows.map((row) => [
        row.benchmark,
        row.contestant,
        row.figure,
        formatFigure(row.saved),
        formatFigure(row.now),
        formatRatio(row.ratio),
        `${formatRatio(row.interval.low)} to ${formatRatio(row.interval.high)}`,
        row.pValue < 0.0005 ? "<.001" : row.pValue.toFixed(3),
        row.verdict,
      ]),
    ),
  ].join("\n");
}

/** The whole report as one page that needs nothing but itself. */
export function htmlReport(report: BenchReport, comparison: Comparison | null): string {
  const smoke =
    report.size === "smoke"
      ? `<p class="missed"><b>Smoke size: it shows that the benchmarks run. These figures mean nothing.</b></p>`
      : "";
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Benchmarks ${escapeHtml(report.startedAt)}</title>
<style>${STYLE}</style></head><body>
<h1>Inspection Results Service: benchmarks</h1>
<p class="soft">${escapeHtml(report.startedAt)}, ${report.size} size, ${formatFigure(report.seconds)} s, seed ${report.seed}</p>
${smoke}
<table>${machineRows(report.machine)
    .map(([key, value]) => `<tr><th>${escapeHtml(key)}</th><td class="text">${escapeHtml(value)}</td></tr>`)
    .join("")}</table>
${report.benchmarks.map(benchmarkSection).join("\n")}
${comparison === null ? "" : comparisonSection(comparison)}
</body></html>
`;
}
