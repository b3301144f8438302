import type { Comparison } from "../harness/comparison.js";
import type { Machine } from "../harness/machine.js";
import type { BenchmarkResult, BenchReport } from "../harness/result.js";
import { formatFigure, formatMicroseconds, formatPercent, formatRatio } from "./number-format.js";
import { describeGoal, describeVerdict } from "./verdict-text.js";

const WIDTH = 110;

/** Columns as wide as their widest cell; the first one to the left, figures to the right. */
export function alignTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? "").length)),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => {
        const width = widths[column] as number;
        return column === 0 ? cell.padEnd(width) : cell.padStart(width);
      })
      .join("  ")
      .trimEnd();
  return [line(header), widths.map((width) => "-".repeat(width)).join("  "), ...rows.map(line)].join("\n");
}

function wrap(text: string, indent: string): string {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(/\s+/)) {
    if (line.length > indent.length && line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = indent;
    }
    line += line.length > indent.length ? ` ${word}` : word;
  }
  lines.push(line);
  return lines.join("\n");
}

/** What the machine was, as rows for a reader. */
export function machineRows(machine: Machine): [string, string][] {
  const { fdatasync } = machine;
  return [
    ["CPU", `${machine.cpuModel}, ${machine.cpuCount} cores`],
    ["memory", `${(machine.memoryBytes / 2 ** 30).toFixed(1)} GiB`],
    ["system", `${machine.kernel}, Node ${machine.nodeVersion}`],
    ["load average", machine.loadAverage.map((load) => load.toFixed(2)).join(" ")],
    ["data on", `${machine.directory} (${machine.fileSystem})`],
    [
      "fdatasync",
      `median ${formatMicroseconds(fdatasync.medianUs)}, ${formatMicroseconds(fdatasync.minimumUs)} to ` +
        `${formatMicroseconds(fdatasync.maximumUs)} after 4 KiB: ${fdatasync.verdict}`,
    ],
    [
      "revision",
      machine.gitRevision === null ? "unknown" : `${machine.gitRevision}${machine.gitDirty ? " with changes" : ""}`,
    ],
  ];
}

export function machineText(machine: Machine): string {
  return machineRows(machine)
    .map(([key, value]) => `${key.padEnd(13)} ${value}`)
    .join("\n");
}

function contestantTable(result: BenchmarkResult): string {
  const hasLatency = result.contestants.some(({ latency }) => latency !== undefined);
  const header = ["contestant", `median ${result.metric.unit}`, "IQR", "min", "max", "rounds"];
  if (hasLatency) header.push("p50", "p99", "p99.9", "max");
  return alignTable(
    header,
    result.contestants.map(({ name, spread, latency }) => [
      name,
      formatFigure(spread.median),
      formatPercent((spread.upperQuartile - spread.lowerQuartile) / spread.median),
      formatFigure(spread.minimum),
      formatFigure(spread.maximum),
      `${spread.count}`,
      ...(latency === undefined
        ? []
        : [latency.p50Us, latency.p99Us, latency.p999Us, latency.maximumUs].map(formatMicroseconds)),
    ]),
  );
}

function detailTable(result: BenchmarkResult): string | null {
  const keys = [...new Set(result.contestants.flatMap(({ details }) => Object.keys(details)))];
  if (keys.length === 0) return null;
  return alignTable(
    ["medians of", ...keys],
    result.contestants.map(({ name, details }) => [
      name,
      ...keys.map((key) => (details[key] === undefined ? "" : formatFigure(details[key] as number))),
    ]),
  );
}

export function benchmarkText(result: BenchmarkResult): string {
  const parts = [
    `== ${result.name} (${result.metric.name}, ${result.metric.better} is better)`,
    wrap(result.measures, "   "),
  ];
  if (result.error !== null) return [...parts, `   FAILED: ${result.error}`].join("\n");
  for (const { name, description } of result.contestants) parts.push(wrap(`- ${name}: ${description}`, "   "));
  // Without any, all of them are missing.
  if (result.contestants.length > 0) parts.push("", contestantTable(result));
  const details = detailTable(result);
  if (details !== null) parts.push("", details);
  if (result.pairs.length > 0) {
    const rows = result.pairs.map(({ contestant, peer, spread, interval }) => [
      `${contestant} / ${peer}`,
      formatRatio(spread.median),
      `${formatRatio(interval.low)} to ${formatRatio(interval.high)} (${(interval.confidence * 100).toFixed(0)} %)`,
      formatRatio(spread.minimum),
      formatRatio(spread.maximum),
    ]);
    parts.push("", alignTable(["round by round", "median", "interval of median", "min", "max"], rows));
  }
  parts.push("");
  for (const goal of result.goals) {
    const { unit } = result.metric;
    parts.push(
      wrap(`goal: ${describeGoal(goal.goal, unit)} (${goal.goal.source})`, ""),
      wrap(describeVerdict(goal, unit), "      "),
    );
  }
  for (const { name, why } of result.missing ?? []) parts.push(wrap(`missing: ${name}: ${why}`, ""));
  for (const goal of result.unjudged ?? []) {
    parts.push(wrap(`goal not judged: ${describeGoal(goal, result.metric.unit)} (${goal.source})`, ""));
  }
  for (const note of result.notes) parts.push(wrap(`note: ${note}`, ""));
  for (const { name, warnings } of result.contestants) {
    for (const { text, rounds } of warnings) parts.push(wrap(`warning: ${name}, in ${rounds} rounds: ${text}`, ""));
  }
  return parts.join("\n").trimEnd();
}

/** Of all benchmarks: the one screen to read when in a hurry. */
export function goalSummaryText(report: BenchReport): string {
  const rows = report.benchmarks.flatMap((result) =>
    result.error !== null
      ? [[result.name, "did not run", "", "FAILED"]]
      : [
          ...result.goals.map((goal) => [
            result.name,
            describeGoal(goal.goal, result.metric.unit),
            goal.goal.kind === "ratio" ? formatRatio(goal.spread.median) : formatFigure(goal.spread.median),
            `${goal.met ? "met" : "MISSED"} ${goal.margin < 0 ? "-" : "+"}${formatPercent(Math.abs(goal.margin))}` +
              (goal.clear ? "" : " (unsure)"),
          ]),
          ...(result.unjudged ?? []).map((goal) => [
            result.name,
            describeGoal(goal, result.metric.unit),
            "",
            "not judged: a contestant is missing",
          ]),
        ],
  );
  return rows.length === 0 ? "" : alignTable(["benchmark", "goal", "median", "verdict"], rows);
}

export function comparisonText(comparison: Comparison): string {
  const table = alignTable(
    ["benchmark, contestant, figure", "saved", "now", "now/saved", "99 % interval", "p", "verdict"],
    comparison.rows.map((row) => [
      `${row.benchmark} ${row.contestant} ${row.figure}`,
      formatFigure(row.saved),
      formatFigure(row.now),
      formatRatio(row.ratio),
      `${formatRatio(row.interval.low)} to ${formatRatio(row.interval.high)}`,
      row.pValue < 0.0005 ? "<.001" : row.pValue.toFixed(3),
      row.verdict,
    ]),
  );
  return [
    `== compared with ${comparison.source}`,
    ...comparison.warnings.map((text) => `warning: ${text}`),
    table,
  ].join("\n");
}
