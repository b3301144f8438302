import { hash } from "node:crypto";
import { CANONICAL_UNITS, CHECK_STATUSES } from "../../../core/run/quality.js";
import { RUN_STATUSES } from "../../../core/run/run-state.js";
import { finite, limitsOf } from "../../../core/statistics/capability.js";
import { checkFigures } from "../../../core/statistics/check-figures.js";
import { SortedValues } from "../../../core/statistics/sorted-values.js";
import { formatTimeUs, timeText } from "../../../core/timestamps.js";
import type { FindingQuery } from "../../../storage/findings/finding-query.js";
import { type OrderedRuns, runsInOrder } from "../../../storage/findings/runs-in-order.js";
import type { ColumnsReader } from "../../../storage/findings/segment-findings.js";
import { QUALITY_CODES } from "../../../storage/records/index-layout.js";
import { KeptSummaries } from "./kept-summaries.js";
import { type OutcomeCount, PartYields, type Yields } from "./part-yields.js";
import {
  type CheckSummary,
  type DefectCount,
  durationOf,
  type HeldBounds,
  ProgramSummary,
  type Series,
  TooManyNamesError,
} from "./program-summary.js";

/**
 * What is held at a time: 96 MB of values and durations, and as much of serial numbers. While a series is sorted, its numbers take
 * their room twice.
 */
const HELD: HeldBounds = { mostValues: 12_000_000, mostPartBytes: 96_000_000 };

/** The JSON of the answer, and its SHA-1 in base64url; null: there are more names than an answer may have. */
export type StatisticsAnswer = { json: Uint8Array<ArrayBuffer>; sha1: string } | { json: null };

/**
 * ProgramStatisticsResponse as JSON. It reads the columns once, and goes on where the last answer to the same question ended, unless a run
 * has come that ended before: a hub gets such runs. If there are more values or serial numbers than are held at a time, it reads all
 * columns again for each part of them.
 *
 * @param held what is held at a time; a check with more values is held alone, and so are durations
 */
export async function programStatistics(
  reader: ColumnsReader,
  query: FindingQuery,
  { kept = new KeptSummaries(), held = HELD } = {},
): Promise<StatisticsAnswer> {
  let summary = kept.take(query) ?? new ProgramSummary(query, held);
  try {
    if (!(await summary.count(reader, query.untilSequence))) {
      summary = new ProgramSummary(query, held);
      await summary.count(reader, query.untilSequence);
    }
  } catch (error) {
    if (error instanceof TooManyNamesError) return { json: null };
    throw error;
  }
  const yields = summary.yields.isHeld ? summary.yields : await yieldsInShares(summary, query, reader);
  const checks = new Map<string, string>();
  let durations = durationsOf(new SortedValues());
  for (const group of groupsOf(summary, held.mostValues)) {
    const sorted = new Map(group.map((series) => [series, sortedOf(summary, series)]));
    if (!summary.holdsValues) for await (const part of runsInOrder(reader, query)) addValues(part, summary, sorted);
    for (const [series, values] of sorted) {
      if ("name" in series) checks.set(series.name, checkJson(series, values));
      else durations = durationsOf(values);
    }
  }
  const names = [...checks.keys()].sort();
  const head = JSON.stringify(headOf(query, summary, yields, durations));
  const defects = JSON.stringify(defectsOf(summary.defects.values()));
  const list = names.map((name) => checks.get(name)).join(",");
  const json = Buffer.from(`${head.slice(0, -1)},"checks":[${list}],"defects":${defects}}`);
  kept.keep(query, summary);
  return { json: new Uint8Array(json), sha1: hash("sha1", json, "base64url") };
}

type AnySeries = CheckSummary | Series;

function sortedOf(summary: ProgramSummary, series: AnySeries): SortedValues {
  return summary.holdsValues ? series.sorted : new SortedValues();
}

/** Durations and checks, in groups whose numbers are held together. */
function groupsOf({ checks, durations, holdsValues }: ProgramSummary, mostValues: number): AnySeries[][] {
  const all: AnySeries[] = [durations, ...checks];
  if (holdsValues) return [all];
  const groups: AnySeries[][] = [];
  let held = Number.POSITIVE_INFINITY;
  for (const series of all) {
    if (held + series.values > mostValues) {
      groups.push([]);
      held = 0;
    }
    groups.at(-1)!.push(series);
    held += series.values;
  }
  return groups;
}

/** Yields of parts that are too many to be held. It reads all columns once for each share of them. */
async function yieldsInShares(
  { yields: { neededShares } }: ProgramSummary,
  query: FindingQuery,
  reader: ColumnsReader,
): Promise<Yields> {
  const all = { first: { passed: 0, known: 0 }, final: { passed: 0, known: 0 } };
  for (let share = 0; share < neededShares; share++) {
    const counted = new PartYields(Number.POSITIVE_INFINITY, share, neededShares);
    for await (const { segment, runs } of runsInOrder(reader, query)) counted.add(segment, runs);
    for (const which of ["first", "final"] as const) {
      all[which].passed += counted[which].passed;
      all[which].known += counted[which].known;
    }
  }
  return all;
}

function headOf(
  { programId, sinceUs, untilUs }: FindingQuery,
  { runs, outcomes }: ProgramSummary,
  { first, final }: Yields,
  durations: ReturnType<typeof durationsOf>,
) {
  const ended = (status: (typeof RUN_STATUSES)[number]) => runs[RUN_STATUSES.indexOf(status)];
  const outcome = (code: (typeof QUALITY_CODES)[number]) => outcomes[QUALITY_CODES.indexOf(code)];
  return {
    program_id: programId,
    completed_since: timeText(sinceUs),
    completed_until: timeText(untilUs),
    runs: {
      completed: ended("completed"),
      failed: ended("failed"),
      cancelled: ended("cancelled"),
      passed: outcome("passed"),
      failed_qc: outcome("failed"),
      indeterminate: outcome("indeterminate"),
      without_report: outcome(null),
    },
    first_pass_yield: shareOf(first),
    final_yield: shareOf(final),
    duration_seconds: durations,
  };
}

function durationsOf(seconds: SortedValues) {
  const quantile = (share: number) => finite(seconds.quantile(share));
  return { count: seconds.count, p50: quantile(0.5), p90: quantile(0.9), p99: quantile(0.99) };
}

function shareOf({ passed, known }: OutcomeCount): number | null {
  return known === 0 ? null : passed / known;
}

function defectsOf(defects: Iterable<DefectCount>) {
  const inOrder = [...defects].sort((a, b) => b.defects - a.defects || compareNames(a.type, b.type));
  return inOrder.map(({ type, defects: count, runs, severities }) => {
    const severity = [...severities].sort(([a], [b]) => compareNames(a, b));
    return { type, defects: count, runs, severity: Object.fromEntries(severity) };
  });
}

/** By UTF-16 code units, null last. */
function compareNames(a: string | null, b: string | null): number {
  if (a === b) return 0;
  if (a === null || b === null) return a === null ? 1 : -1;
  return a < b ? -1 : 1;
}

/** Adds the numbers of these series. */
function addValues(
  { segment, runs }: OrderedRuns,
  summary: ProgramSummary,
  sorted: ReadonlyMap<AnySeries, SortedValues>,
): void {
  const ofSetting = Array.from(summary.checksOfSettings(segment), (place) => sorted.get(summary.checks[place]!));
  const durations = sorted.get(summary.durations);
  const { checkEnds, settings, values } = segment.figures;
  for (const run of runs) {
    const seconds = durationOf(segment, run);
    if (seconds !== null) durations?.add(seconds);
    const end = checkEnds[run] as number;
    for (let check = run === 0 ? 0 : (checkEnds[run - 1] as number); check < end; check++) {
      const value = values[check] as number;
      if (!Number.isNaN(value)) ofSetting[settings[check] as number]?.add(value);
    }
  }
}

function checkJson(check: CheckSummary, sorted: SortedValues): string {
  const { name, counts, values, units, nominal, threshold, limitsChanged, running } = check;
  const limits = limitsOf(finite(nominal), finite(threshold));
  const trend = running.buckets.map(({ fromUs, toUs, count, mean, minimum, maximum, failed }) => ({
    from: formatTimeUs(fromUs),
    to: formatTimeUs(toUs),
    ...{ count, mean: finite(mean), minimum, maximum, failed },
  }));
  const { mean, standard_deviation, minimum, maximum, median, cp, cpk, pp, ppk, histogram } = checkFigures(
    running,
    sorted,
    limits,
  );
  return JSON.stringify({
    name,
    canonical_units: CANONICAL_UNITS[units],
    count: counts.reduce((sum, count) => sum + count, 0),
    ...Object.fromEntries(CHECK_STATUSES.map((status, at) => [status, counts[at]])),
    values,
    ...{ mean, standard_deviation, minimum, maximum, median },
    ...{ nominal: finite(nominal), lower_limit: limits.lower, upper_limit: limits.upper },
    limits_changed: limitsChanged,
    ...{ cp, cpk, pp, ppk, histogram, trend },
  });
}
