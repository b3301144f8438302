import { hash } from "node:crypto";
import { LIMITS } from "../../../core/limits.js";
import { CANONICAL_UNITS, CHECK_STATUSES } from "../../../core/run/quality.js";
import { RUN_STATUSES } from "../../../core/run/run-state.js";
import { finite, limitsOf } from "../../../core/statistics/capability.js";
import { bucketOf, checkFigures, trendOf } from "../../../core/statistics/check-figures.js";
import { quantileOf } from "../../../core/statistics/value-statistics.js";
import { formatTimeUs, timeText } from "../../../core/timestamps.js";
import { type FindingQuery, matchingRuns } from "../../../storage/findings/finding-query.js";
import type { FindingsReader, SegmentFindings } from "../../../storage/findings/segment-findings.js";
import { QUALITY_CODES } from "../../../storage/records/index-layout.js";
import { type CheckSummary, type DefectCount, ProgramSummary, TooManyNamesError } from "./program-summary.js";

/** Values that are held at a time: 96 MB. */
const VALUES_AT_A_TIME = 12_000_000;

const FAILED_CHECK = CHECK_STATUSES.indexOf("failed");

/** The JSON of the answer, and its SHA-1 in base64url; null: there are more names than an answer may have. */
export type StatisticsAnswer = { json: Uint8Array<ArrayBuffer>; sha1: string } | { json: null };

/**
 * ProgramStatisticsResponse as JSON. It reads the columns once to count, and once or more for the values: as many as are held
 * at a time.
 *
 * @param mostValues that are held at a time; a check with more is held alone
 */
export async function programStatistics(
  reader: FindingsReader,
  query: FindingQuery,
  mostValues = VALUES_AT_A_TIME,
): Promise<StatisticsAnswer> {
  const segments = () => reader.segments(query.dataDirectory, query.untilSequence);
  const summary = new ProgramSummary(query);
  try {
    for await (const segment of segments()) summary.add(segment);
  } catch (error) {
    if (error instanceof TooManyNamesError) return { json: null };
    throw error;
  }
  const { trendBuckets, allTrendBuckets } = LIMITS;
  const buckets = Math.min(trendBuckets, Math.floor(allTrendBuckets / Math.max(1, summary.checks.length)));
  const checks = new Map<string, string>();
  for (const group of groupsOf(summary.checks, mostValues)) {
    const series = new Map(group.map((place) => [place, new CheckSeries(summary.checks[place]!, buckets)]));
    for await (const segment of segments()) addValues(segment, query, summary, series);
    for (const one of series.values()) checks.set(one.check.name, one.json());
  }
  const names = [...checks.keys()].sort();
  const head = JSON.stringify(headOf(query, summary));
  const defects = JSON.stringify(defectsOf(summary.defects.values()));
  const list = names.map((name) => checks.get(name)).join(",");
  const json = Buffer.from(`${head.slice(0, -1)},"checks":[${list}],"defects":${defects}}`);
  return { json: new Uint8Array(json), sha1: hash("sha1", json, "base64url") };
}

/** The places of the checks, in groups whose values are held together. */
function groupsOf(checks: readonly CheckSummary[], mostValues: number): number[][] {
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
  const durations = Float64Array.from(summary.durationsSeconds);
  const quantile = (share: number) => (durations.length === 0 ? null : quantileOf(durations, share));
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
    final_yield: shareOf(summary.finalPass()),
    duration_seconds: { count: durations.length, p50: quantile(0.5), p90: quantile(0.9), p99: quantile(0.99) },
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
  series: ReadonlyMap<number, CheckSeries>,
): void {
  const ofSetting = Array.from(summary.checksOfSettings(segment), (place) => series.get(place));
  const { checkEnds, settings, values, checkStatuses, completedAtUs } = segment.figures;
  for (const run of matchingRuns(segment, query)) {
    const end = checkEnds[run] as number;
    for (let check = run === 0 ? 0 : (checkEnds[run - 1] as number); check < end; check++) {
      const value = values[check] as number;
      if (Number.isNaN(value)) continue;
      const isFailed = checkStatuses[check] === FAILED_CHECK;
      ofSetting[settings[check] as number]?.add(value, completedAtUs[run] as number, isFailed);
    }
  }
}

/** The values of one check, in the order in which their runs ended. */
class CheckSeries {
  readonly check: CheckSummary;
  readonly #values: Float64Array;
  readonly #buckets: number;
  readonly #fromUs: Float64Array;
  readonly #toUs: Float64Array;
  readonly #failed: Uint32Array;
  #count = 0;

  constructor(check: CheckSummary, mostBuckets: number) {
    this.check = check;
    this.#values = new Float64Array(check.values);
    this.#buckets = Math.min(mostBuckets, check.values);
    this.#fromUs = new Float64Array(this.#buckets);
    this.#toUs = new Float64Array(this.#buckets);
    this.#failed = new Uint32Array(this.#buckets);
  }

  add(value: number, timeUs: number, isFailed: boolean): void {
    const bucket = bucketOf(this.#count, this.#values.length, this.#buckets);
    this.#values[this.#count++] = value;
    if (this.#fromUs[bucket] === 0) this.#fromUs[bucket] = timeUs;
    this.#toUs[bucket] = timeUs;
    if (isFailed) this.#failed[bucket] = (this.#failed[bucket] as number) + 1;
  }

  json(): string {
    const { name, counts, values, units, nominal, threshold, limitsChanged } = this.check;
    const limits = limitsOf(finite(nominal), finite(threshold));
    const trend = trendOf(this.#values, this.#buckets).map((bucket, at) => ({
      from: formatTimeUs(this.#fromUs[at] as number),
      to: formatTimeUs(this.#toUs[at] as number),
      ...bucket,
      failed: this.#failed[at] as number,
    }));
    const { mean, standard_deviation, minimum, maximum, median, cp, cpk, pp, ppk, histogram } = checkFigures(
      this.#values,
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
}
