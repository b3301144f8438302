import { hash } from "node:crypto";
import { CANONICAL_UNITS, CHECK_STATUSES } from "../../../core/run/quality.js";
import { RUN_STATUSES } from "../../../core/run/run-state.js";
import { finite, limitsOf } from "../../../core/statistics/capability.js";
import { checkFigures } from "../../../core/statistics/check-figures.js";
import { SortedValues } from "../../../core/statistics/sorted-values.js";
import { formatTimeUs, timeText } from "../../../core/timestamps.js";
import { type FindingQuery, matchingRuns } from "../../../storage/findings/finding-query.js";
import type { FindingsReader, SegmentFindings } from "../../../storage/findings/segment-findings.js";
import { QUALITY_CODES } from "../../../storage/records/index-layout.js";
import { KeptSummaries } from "./kept-summaries.js";
import { type CheckSummary, type DefectCount, ProgramSummary, TooManyNamesError } from "./program-summary.js";

/** Values that are held at a time: 96 MB, and a little more while they are sorted. */
const VALUES_AT_A_TIME = 12_000_000;

/** The JSON of the answer, and its SHA-1 in base64url; null: there are more names than an answer may have. */
export type StatisticsAnswer = { json: Uint8Array<ArrayBuffer>; sha1: string } | { json: null };

/**
 * ProgramStatisticsResponse as JSON. It reads the columns once, and goes on where the last answer to the same question ended. If there are
 * more values than are held at a time, it reads all columns again for each part of them.
 *
 * @param mostValues that are held at a time; a check with more is held alone
 */
export async function programStatistics(
  reader: FindingsReader,
  query: FindingQuery,
  { kept = new KeptSummaries(), mostValues = VALUES_AT_A_TIME } = {},
): Promise<StatisticsAnswer> {
  const { dataDirectory, untilSequence } = query;
  const segments = (fromBase: number) => reader.segments(dataDirectory, untilSequence, { fromBase });
  const summary = kept.take(query) ?? new ProgramSummary(query, mostValues);
  try {
    for await (const segment of segments(summary.base)) summary.add(segment);
  } catch (error) {
    if (error instanceof TooManyNamesError) return { json: null };
    throw error;
  }
  const checks = new Map<string, string>();
  for (const group of groupsOf(summary, mostValues)) {
    const sorted = new Map(group.map((place) => [place, sortedOf(summary, place)]));
    if (!summary.holdsValues) for await (const segment of segments(0)) addValues(segment, query, summary, sorted);
    for (const [place, values] of sorted)
      checks.set(summary.checks[place]!.name, checkJson(summary.checks[place]!, values));
  }
  const names = [...checks.keys()].sort();
  const head = JSON.stringify(headOf(query, summary));
  const defects = JSON.stringify(defectsOf(summary.defects.values()));
  const list = names.map((name) => checks.get(name)).join(",");
  const json = Buffer.from(`${head.slice(0, -1)},"checks":[${list}],"defects":${defects}}`);
  kept.keep(query, summary);
  return { json: new Uint8Array(json), sha1: hash("sha1", json, "base64url") };
}

function sortedOf(summary: ProgramSummary, place: number): SortedValues {
  return summary.holdsValues ? summary.checks[place]!.sorted : new SortedValues();
}

/** The places of the checks, in groups whose values are held together. */
function groupsOf({ checks, holdsValues }: ProgramSummary, mostValues: number): number[][] {
  if (holdsValues) return [[...checks.keys()]];
  const groups: number[][] = [];
  let held = Number.POSITIVE_INFINITY;
  for (const [place, { values }] of checks.entries()) {
    if (held + values > mostValues) {
      groups.push([]);
      held = 0;
    }
    groups.at(-1)!.push(place);
    held += values;
  }
  return groups;
}

function headOf({ programId, sinceUs, untilUs }: FindingQuery, summary: ProgramSummary) {
  const { runs, outcomes, firstPass } = summary;
  const ended = (status: (typeof RUN_STATUSES)[number]) => runs[RUN_STATUSES.indexOf(status)];
  const outcome = (code: (typeof QUALITY_CODES)[number]) => outcomes[QUALITY_CODES.indexOf(code)];
  const durations = summary.durationsSeconds;
  const quantile = (share: number) => finite(durations.quantile(share));
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
    first_pass_yield: shareOf(firstPass),
    final_yield: shareOf(summary.finalPass),
    duration_seconds: { count: durations.count, p50: quantile(0.5), p90: quantile(0.9), p99: quantile(0.99) },
  };
}

function shareOf({ passed, known }: { passed: number; known: number }): number | null {
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

function addValues(
  segment: SegmentFindings,
  query: FindingQuery,
  summary: ProgramSummary,
  sorted: ReadonlyMap<number, SortedValues>,
): void {
  const ofSetting = Array.from(summary.checksOfSettings(segment), (place) => sorted.get(place));
  const { checkEnds, settings, values } = segment.figures;
  for (const run of matchingRuns(segment, query)) {
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
