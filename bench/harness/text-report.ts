import type { Benchmark, Goal } from "./benchmark.js";
import type { GuardRow } from "./guard.js";
import { mergeLatencies } from "./latency-histogram.js";
import type { Machine } from "./machine.js";
import type { BenchmarkResult } from "./result.js";
import type { ContestantRounds } from "./rounds.js";
import { describeSpread, median } from "./statistics.js";
import { figure, type GoalVerdict, judgeGoal, pairsOf } from "./summary.js";

const WIDTH = 110;

/** Four significant digits, thousands grouped. No timing is more precise than that. */
function formatFigure(value: number): string {
  if (value === 0) return "0";
  const magnitude = Math.abs(value);
  if (magnitude >= 1000) {
    const digits = Math.max(0, Math.floor(Math.log10(magnitude)) - 3);
    return (Math.round(value / 10 ** digits) * 10 ** digits).toLocaleString("en-US");
  }
  return value.toFixed(Math.min(4, Math.max(0, 3 - Math.floor(Math.log10(magnitude)))));
}

/** Microseconds as a time with a fitting unit. */
function formatMicroseconds(us: number): string {
  if (us < 1000) return `${formatFigure(us)} us`;
  if (us < 1e6) return `${formatFigure(us / 1000)} ms`;
  return `${formatFigure(us / 1e6)} s`;
}

function formatRatio(ratio: number): string {
  return ratio.toFixed(ratio < 0.1 ? 3 : 2);
}

function formatPercent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

/** Each column is as wide as its widest cell. The first column is aligned to the left, figures to the right. */
export function alignTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? "").length)),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join("  ")
      .trimEnd();
  return [line(header), widths.map((width) => "-".repeat(width)).join("  "), ...rows.map(line)].join("\n");
}

function wrap(text: string, indent = ""): string {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(/\s+/)) {
    if (line.length > indent.length && line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = indent;
    }
    line += line.length > indent.length ? ` ${word}` : word;
  }
  return [...lines, line].join("\n");
}

/** The machine of the run. */
export function machineText(machine: Machine): string {
  const { fdatasync } = machine;
  const rows = [
    ["CPU", `${machine.cpuModel}, ${machine.cpuCount} cores`],
    ["memory", `${(machine.memoryBytes / 2 ** 30).toFixed(1)} GiB`],
    ["system", `${machine.kernel}, Node ${machine.nodeVersion}`],
    ["load average", machine.loadAverage.map((load) => load.toFixed(2)).join(" ")],
    ["data on", `${machine.directory} (${machine.fileSystem})`],
    ["fdatasync", `median ${formatMicroseconds(fdatasync.medianUs)} after 4 KiB: ${fdatasync.verdict}`],
    ["revision", `${machine.gitRevision ?? "unknown"}${machine.gitDirty === true ? " with changes" : ""}`],
  ];
  return rows.map(([key = "", value]) => `${key.padEnd(13)} ${value}`).join("\n");
}

function contestantTable(contestants: readonly ContestantRounds[], unit: string): string {
  const header = ["contestant", `median ${unit}`, "IQR", "min", "max", "rounds", "p50", "p99", "p99.9", "max"];
  const rows = contestants.map(({ name, rounds }) => {
    const spread = describeSpread(rounds.map(({ value }) => value));
    const latencies = rounds.flatMap(({ latency }) => latency ?? []);
    const { p50Us, p99Us, p999Us, maximumUs } = mergeLatencies(latencies).summarize();
    return [
      name,
      formatFigure(spread.median),
      formatPercent((spread.upperQuartile - spread.lowerQuartile) / spread.median),
      formatFigure(spread.minimum),
      formatFigure(spread.maximum),
      `${spread.count}`,
      ...(latencies.length === 0 ? [] : [p50Us, p99Us, p999Us, maximumUs].map(formatMicroseconds)),
    ];
  });
  const columns = Math.max(...rows.map((row) => row.length));
  return alignTable(header.slice(0, columns), rows);
}

function detailTable(contestants: readonly ContestantRounds[]): string[] {
  const keys = [
    ...new Set(contestants.flatMap(({ rounds }) => rounds.flatMap(({ details = {} }) => Object.keys(details)))),
  ];
  if (keys.length === 0) return [];
  const cell = ({ rounds }: ContestantRounds, key: string): string => {
    const values = rounds.flatMap(({ details }) => details?.[key] ?? []);
    return values.length === 0 ? "" : formatFigure(median(values));
  };
  const rows = contestants.map((contestant) => [contestant.name, ...keys.map((key) => cell(contestant, key))]);
  return ["", alignTable(["medians of", ...keys], rows)];
}

function pairTable(benchmark: Benchmark, result: BenchmarkResult): string[] {
  const rows = pairsOf(benchmark).flatMap(([contestant, peer]) => {
    const ratio = figure(result, contestant, peer);
    if (ratio === undefined) return [];
    const { spread, interval } = ratio;
    const range = `${formatRatio(interval.low)} to ${formatRatio(interval.high)} (${(interval.confidence * 100).toFixed(0)} %)`;
    return [[`${contestant} / ${peer}`, formatRatio(spread.median), range]];
  });
  return rows.length === 0 ? [] : ["", alignTable(["round by round", "median", "interval of median"], rows)];
}

function warningLines({ contestants }: BenchmarkResult): string[] {
  return contestants.flatMap(({ name, rounds }) => {
    const counts = new Map<string, number>();
    for (const text of rounds.flatMap(({ warnings = [] }) => warnings)) counts.set(text, (counts.get(text) ?? 0) + 1);
    return [...counts].map(([text, count]) => wrap(`warning: ${name}, in ${count} rounds: ${text}`));
  });
}

function goalText({ contestant, peer, direction, target }: Goal, unit: string): string {
  const bound = direction === "at-least" ? "at least" : "at most";
  return peer === undefined
    ? `${contestant} ${bound} ${formatFigure(target)} ${unit}`
    : `${contestant} / ${peer} ${bound} ${formatRatio(target)}`;
}

/** Whether a goal is met or missed, by how much, and how sure that is. */
function verdictText({ met, margin, isClear, spread, interval, goal }: GoalVerdict): string {
  const format = goal.peer === undefined ? formatFigure : formatRatio;
  const share = formatPercent(Math.abs(margin));
  const unsure = isClear ? "" : "; more rounds may turn it";
  const range = `${(interval.confidence * 100).toFixed(0)} % interval ${format(interval.low)} to ${format(interval.high)}`;
  return `${met ? `met, ${share} beyond` : `MISSED by ${share}`}: median ${format(spread.median)}, ${range}${unsure}`;
}

/** The whole report about one benchmark. */
export function benchmarkText(benchmark: Benchmark, result: BenchmarkResult): string {
  const { metric, goals } = benchmark;
  const parts = [
    `== ${benchmark.name} (${metric.name}, ${metric.better} is better)`,
    wrap(benchmark.measures, "   "),
    ...benchmark.contestants.map(({ name, description }) => wrap(`- ${name}: ${description}`, "   ")),
  ];
  if (result.error !== null) return [...parts, `   FAILED: ${result.error}`].join("\n");
  if (result.contestants.length > 0) parts.push("", contestantTable(result.contestants, metric.unit));
  parts.push(...detailTable(result.contestants), ...pairTable(benchmark, result), "");
  for (const goal of goals) {
    const verdict = judgeGoal(goal, result);
    parts.push(
      wrap(`goal: ${goalText(goal, metric.unit)} (${goal.source})`),
      wrap(verdict === undefined ? "not judged: a contestant is missing" : verdictText(verdict), "      "),
    );
  }
  for (const { name, why } of result.missing) parts.push(wrap(`missing: ${name}: ${why}`));
  for (const note of result.notes) parts.push(wrap(`note: ${note}`));
  return [...parts, ...warningLines(result)].join("\n").trimEnd();
}

/** The goals of all benchmarks, for readers in a hurry. */
export function goalSummaryText(all: readonly (readonly [Benchmark, BenchmarkResult])[]): string {
  const rows = all.flatMap(([{ name, metric, goals }, result]) => {
    if (result.error !== null) return [[name, "did not run", "", "FAILED"]];
    return goals.map((goal) => {
      const verdict = judgeGoal(goal, result);
      if (verdict === undefined) return [name, goalText(goal, metric.unit), "", "not judged"];
      const { met, margin, isClear, spread } = verdict;
      const sign = margin < 0 ? "-" : "+";
      const told = `${met ? "met" : "MISSED"} ${sign}${formatPercent(Math.abs(margin))}${isClear ? "" : " (unsure)"}`;
      const format = goal.peer === undefined ? formatFigure : formatRatio;
      return [name, goalText(goal, metric.unit), format(spread.median), told];
    });
  });
  return rows.length === 0 ? "" : alignTable(["benchmark", "goal", "median", "verdict"], rows);
}

/** A table of all figures, then one line for each that is surely worse or could not be judged. */
export function guardText(rows: readonly GuardRow[], source: string): string {
  const format = (value: number): string => (Number.isNaN(value) ? "" : formatFigure(value));
  const table = rows.map((row) => [
    `${row.benchmark} ${row.figure}`,
    format(row.saved),
    format(row.now),
    row.unit,
    row.verdict,
  ]);
  const lines = rows.flatMap(({ benchmark, figure: name, saved, now, unit, verdict, why }) => {
    if (verdict === "worse") {
      return [
        `REGRESSION: ${benchmark}, ${name}: ${why ?? `${format(saved)} became ${format(now)} ${unit}`.trimEnd()}`,
      ];
    }
    return verdict === "unknown" ? [`not judged: ${benchmark}, ${name}: ${why}`] : [];
  });
  return [
    `== compared with ${source}`,
    alignTable(["figure", "saved", "now", "unit", "verdict"], table),
    ...(lines.length === 0 ? ["no regression"] : lines),
  ].join("\n");
}
