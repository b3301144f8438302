/**
 * What a program's statistics should be, computed plainly: everything is in arrays, sorted and counted by the definitions. It shares
 * no code with the product.
 */
import type { StoredMeasuredRun } from "./measured-store.js";

export interface ModelQuestion {
  programId: string;
  untilSequence?: number;
  sinceUs?: number | null;
  untilUs?: number | null;
  serialNumber?: string | null;
  check?: string | null;
}

type Outcome = "passed" | "failed" | "indeterminate" | null;

/** By the time when they ended, and then in the order of the log. */
export function matchingRunsOf(runs: readonly StoredMeasuredRun[], question: ModelQuestion): StoredMeasuredRun[] {
  const { programId, untilSequence = Number.POSITIVE_INFINITY, sinceUs, untilUs, serialNumber } = question;
  const matching = runs.filter(
    (run) =>
      run.programId === programId &&
      run.sequence <= untilSequence &&
      (sinceUs == null || run.completedAtUs >= sinceUs) &&
      (untilUs == null || run.completedAtUs < untilUs) &&
      (serialNumber == null || run.serialNumber === serialNumber),
  );
  return matching.sort((a, b) => a.completedAtUs - b.completedAtUs || a.sequence - b.sequence);
}

function outcomeOf({ status, checks }: StoredMeasuredRun): Outcome {
  if (status !== "completed" || checks.length === 0) return null;
  if (checks.some((check) => check.status === "failed")) return "failed";
  return checks.some((check) => check.status === "error" || check.status === "not_evaluated")
    ? "indeterminate"
    : "passed";
}

const timeOf = (us: number | null | undefined): string | null =>
  us == null
    ? null
    : `${new Date(Math.floor(us / 1000)).toISOString().slice(0, 23)}${String(us % 1000).padStart(3, "0")}Z`;

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const mean = (values: readonly number[]): number => sum(values) / values.length;

export function quantile(values: readonly number[], share: number): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  if (sorted.length === 0) return null;
  const place = (sorted.length - 1) * share;
  const [low, high] = [sorted[Math.floor(place)]!, sorted[Math.ceil(place)]!];
  return low + (high - low) * (place - Math.floor(place));
}

export function modelStatistics(runs: readonly StoredMeasuredRun[], question: ModelQuestion) {
  const matching = matchingRunsOf(runs, question);
  const completed = matching.filter(({ status }) => status === "completed");
  const ended = (status: string) => matching.filter((run) => run.status === status).length;
  const found = (outcome: Outcome) => completed.filter((run) => outcomeOf(run) === outcome).length;
  const byPart = new Map<string, StoredMeasuredRun[]>();
  for (const run of matching) {
    const part = run.serialNumber === null ? `run ${run.id}` : `part ${run.serialNumber}`;
    byPart.set(part, [...(byPart.get(part) ?? []), run]);
  }
  const parts = [...byPart.values()];
  const first = parts.flatMap((runsOfPart) => runsOfPart.find(({ revision }) => revision === 1) ?? []).map(outcomeOf);
  const last = parts.map((runsOfPart) => {
    const newestUs = Math.max(...runsOfPart.map(({ createdAtUs }) => createdAtUs));
    return outcomeOf(runsOfPart.findLast(({ createdAtUs }) => createdAtUs === newestUs) as StoredMeasuredRun);
  });
  const share = (outcomes: Outcome[]) => {
    const known = outcomes.filter((outcome) => outcome !== null);
    return known.length === 0 ? null : known.filter((outcome) => outcome === "passed").length / known.length;
  };
  const seconds = completed.flatMap((run) =>
    run.startedAtUs === null ? [] : (run.completedAtUs - run.startedAtUs) / 1e6,
  );
  const names = new Set(completed.flatMap(({ checks }) => checks.map(({ name }) => name)));
  const wanted = [...names].filter((name) => question.check == null || name === question.check).sort();
  return {
    program_id: question.programId,
    completed_since: timeOf(question.sinceUs),
    completed_until: timeOf(question.untilUs),
    runs: {
      ...{ completed: ended("completed"), failed: ended("failed"), cancelled: ended("cancelled") },
      ...{ passed: found("passed"), failed_qc: found("failed"), indeterminate: found("indeterminate") },
      without_report: found(null),
    },
    first_pass_yield: share(first),
    final_yield: share(last),
    duration_seconds: {
      count: seconds.length,
      ...{ p50: quantile(seconds, 0.5), p90: quantile(seconds, 0.9), p99: quantile(seconds, 0.99) },
    },
    checks: wanted.map((name) => modelCheck(name, completed)),
    defects: modelDefects(completed),
  };
}

function modelCheck(name: string, completed: readonly StoredMeasuredRun[]) {
  const all = completed.flatMap((run) =>
    run.checks.filter((check) => check.name === name).map((check) => ({ run, check })),
  );
  const measured = all.filter(({ check }) => check.value != null);
  const values = measured.map(({ check }) => check.value as number);
  const n = values.length;
  const limited = measured.findLast(({ check }) => check.threshold != null)?.check;
  const named = limited ?? measured.findLast(({ check }) => check.nominal != null)?.check;
  const nominal = named?.nominal ?? null;
  const threshold = limited?.threshold ?? null;
  const lower = threshold === null ? null : nominal === null ? threshold : nominal - threshold;
  const upper = threshold === null || nominal === null ? null : nominal + threshold;
  const settings = new Set(measured.map(({ check }) => `${check.nominal ?? null} ${check.threshold ?? null}`));
  const m = mean(values);
  const deviation = n < 2 ? null : Math.sqrt(sum(values.map((value) => (value - m) ** 2)) / (n - 1));
  const ranges = values.slice(1).map((value, at) => Math.abs(value - values[at]!));
  const short = n < 2 ? null : mean(ranges) / 1.128;
  const index = (spread: number | null) =>
    spread === null || spread === 0 || lower === null || upper === null ? null : (upper - lower) / (6 * spread);
  const centred = (spread: number | null) => {
    if (spread === null || spread === 0) return null;
    const sides = [
      upper === null ? null : (upper - m) / (3 * spread),
      lower === null ? null : (m - lower) / (3 * spread),
    ];
    const known = sides.filter((side) => side !== null);
    return known.length === 0 ? null : Math.min(...known);
  };
  const count = (status: string) => all.filter(({ check }) => check.status === status).length;
  return {
    name,
    canonical_units: all.at(-1)?.check.canonical_units ?? "mm",
    count: all.length,
    ...{ passed: count("passed"), failed: count("failed"), warning: count("warning") },
    ...{ not_evaluated: count("not_evaluated"), error: count("error") },
    values: n,
    mean: n === 0 ? null : m,
    standard_deviation: deviation,
    minimum: n === 0 ? null : Math.min(...values),
    maximum: n === 0 ? null : Math.max(...values),
    median: quantile(values, 0.5),
    ...{ nominal, lower_limit: lower, upper_limit: upper, limits_changed: settings.size > 1 },
    ...{ cp: index(short), cpk: centred(short), pp: index(deviation), ppk: centred(deviation) },
    histogram: modelHistogram(values),
    trend: modelTrend(measured, n),
  };
}

function modelHistogram(values: readonly number[]) {
  if (values.length === 0) return null;
  let [low, high] = [Math.min(...values), Math.max(...values)];
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  const width = (2 * (quantile(values, 0.75)! - quantile(values, 0.25)!)) / Math.cbrt(values.length);
  const bins = width === 0 ? 5 : Math.max(5, Math.min(50, Math.ceil((high - low) / width)));
  const edges = Array.from({ length: bins + 1 }, (_, at) => (at === bins ? high : low + at * ((high - low) / bins)));
  const isIn = (value: number, at: number) =>
    value >= edges[at]! && (at === bins - 1 ? value <= edges[at + 1]! : value < edges[at + 1]!);
  return { edges, counts: edges.slice(1).map((_, at) => values.filter((value) => isIn(value, at)).length) };
}

function modelTrend(
  measured: readonly { run: StoredMeasuredRun; check: { value?: number | null; status: string } }[],
  n: number,
) {
  let size = 1;
  while (n > 200 * size) size *= 2;
  return Array.from({ length: Math.ceil(n / size) }, (_, at) => {
    const part = measured.slice(at * size, (at + 1) * size);
    const values = part.map(({ check }) => check.value as number);
    return {
      from: timeOf(part[0]!.run.completedAtUs),
      to: timeOf(part.at(-1)!.run.completedAtUs),
      count: part.length,
      ...{ mean: mean(values), minimum: Math.min(...values), maximum: Math.max(...values) },
      failed: part.filter(({ check }) => check.status === "failed").length,
    };
  });
}

function modelDefects(completed: readonly StoredMeasuredRun[]) {
  const types = new Set(completed.flatMap(({ defects }) => defects.map(({ type }) => type ?? null)));
  const counted = [...types].map((type) => {
    const of = completed.map(({ defects }) => defects.filter((defect) => (defect.type ?? null) === type));
    const severities = of.flat().flatMap(({ severity }) => severity ?? []);
    const severity = [...new Set(severities)]
      .sort()
      .map((one) => [one, severities.filter((other) => other === one).length]);
    return {
      type,
      defects: of.flat().length,
      runs: of.filter(({ length }) => length > 0).length,
      severity: Object.fromEntries(severity) as Record<string, number>,
    };
  });
  const order = (type: string | null) => (type === null ? "\uffff" : type);
  return counted.sort((a, b) => b.defects - a.defects || (order(a.type) < order(b.type) ? -1 : 1));
}

/** The first place where two answers differ by more than rounding; undefined: none. */
export function differenceOf(found: unknown, expected: unknown, path = ""): string | undefined {
  if (typeof found === "number" && typeof expected === "number") {
    const isNear = Math.abs(found - expected) <= 1e-9 * Math.max(1e-3, Math.abs(expected));
    return isNear ? undefined : `${path}: ${found}, not ${expected}`;
  }
  if (typeof found !== "object" || typeof expected !== "object" || found === null || expected === null) {
    return found === expected ? undefined : `${path}: ${JSON.stringify(found)}, not ${JSON.stringify(expected)}`;
  }
  const [keys, wanted] = [Object.keys(found), Object.keys(expected)];
  if (keys.join() !== wanted.join()) return `${path}: the fields ${keys.join()}, not ${wanted.join()}`;
  for (const key of keys) {
    const difference = differenceOf(found[key as never], expected[key as never], `${path}/${key}`);
    if (difference !== undefined) return difference;
  }
  return undefined;
}
