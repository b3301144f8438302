import {
  count,
  flag,
  list,
  nullable,
  number,
  numbers,
  object,
  oneOf,
  text,
  time,
  uuid,
} from "../../../core/json/described-schema.js";
import { LIMITS } from "../../../core/limits.js";
import { CANONICAL_UNIT_MEANINGS, CHECK_STATUS_MEANINGS } from "../../../core/run/quality.js";
import { listOf, ref } from "./component-reference.js";

const NO_VALUES = "without values";
const FEW_VALUES = "for fewer than two values";
const NO_SPREAD = "without limits, for fewer than two values, and if all are equal";

const figure = (description: string, whenNull: string) => nullable(number(description), whenNull);

const STATUS_COUNTS = Object.fromEntries(
  Object.entries(CHECK_STATUS_MEANINGS).map(([status, meaning]) => [
    status,
    count(`Checks of this status: ${meaning}`),
  ]),
);

export const STATISTICS_SCHEMAS = {
  RunCounts: object(
    {
      completed: count("Completed runs. The next four counts are of these."),
      failed: count("Runs that broke off with an error. They have no report."),
      cancelled: count("Runs that were stopped on purpose. They have no report."),
      passed: count("Completed runs whose report passed."),
      failed_qc: count("Completed runs whose report failed."),
      indeterminate: count("Completed runs whose report is indeterminate."),
      without_report: count("Completed runs without checks."),
    },
    {},
    "Counts of runs that have ended.",
  ),
  DurationStatistics: object(
    {
      count: count("Completed runs that have started."),
      p50: figure("Median, in seconds.", "without such runs"),
      p90: figure("Nine of ten runs take at most this long, in seconds.", "without such runs"),
      p99: figure("99 of 100 runs take at most this long, in seconds.", "without such runs"),
    },
    {},
    "How long completed runs take, from `started_at` to `completed_at`. Quantiles are linear between two runs (Hyndman and Fan, type 7; " +
      "`numpy.percentile`).",
  ),
  Histogram: object(
    {
      edges: numbers("Edges of the bins, ascending: one more than there are bins."),
      counts: list(count("Values of one bin."), "Values in each bin."),
    },
    {},
    "5 to 50 bins of equal width, by Freedman and Diaconis: 2 (Q3 - Q1) / cube root of n. A bin has its lower edge and not its upper " +
      "one; the last has both.",
  ),
  TrendBucket: object(
    {
      from: time("When the run of the first value ended."),
      to: time("When the run of the last value ended."),
      count: count("Values in the bucket."),
      mean: figure("Mean of the values.", "if it is beyond the largest number"),
      minimum: number("Smallest value."),
      maximum: number("Largest value."),
      failed: count("How many of the checks failed."),
    },
    {},
    "Successive values of a check.",
  ),
  CheckStatistics: object(
    {
      name: text("Name of the check."),
      canonical_units: oneOf(CANONICAL_UNIT_MEANINGS, "Unit of the numbers, as the newest check has it."),
      count: count("Checks of this name."),
      ...STATUS_COUNTS,
      values: count("Checks that have a value. Everything below is of these, in the order of `completed_at`."),
      mean: figure("Mean m.", NO_VALUES),
      standard_deviation: figure("Standard deviation s, with n - 1.", FEW_VALUES),
      minimum: figure("Smallest value.", NO_VALUES),
      maximum: figure("Largest value.", NO_VALUES),
      median: figure("Median.", NO_VALUES),
      nominal: figure("Nominal value of the newest check that has nominal value and limits.", "if none has one"),
      lower_limit: figure(
        "`nominal` - `threshold` of that check. Without a nominal value the threshold itself: the least value that passes.",
        "if none has a threshold",
      ),
      upper_limit: figure("`nominal` + `threshold` of that check.", "if none has both"),
      limits_changed: flag("Whether nominal value or threshold were not the same in all."),
      cp: figure(
        "(U - L) / (6 s'), with the limits L and U. s' = mean moving range / 1.128 shows the spread from part to part (ISO 22514-2, " +
          "AIAG SPC).",
        `${NO_SPREAD}, and with one limit only`,
      ),
      cpk: figure(
        "The lesser of (U - m) / (3 s') and (m - L) / (3 s'). With one limit, the term of that one.",
        NO_SPREAD,
      ),
      pp: figure("As `cp`, with s instead of s': it includes drifts.", `${NO_SPREAD}, and with one limit only`),
      ppk: figure("As `cpk`, with s instead of s'.", NO_SPREAD),
      histogram: nullable(ref("Histogram", "Distribution of the values."), NO_VALUES),
      trend: listOf(
        "TrendBucket",
        `The values in order, in at most ${LIMITS.trendBuckets} buckets of the same count, a power of two; the last one has what is left. There ` +
          `are fewer in an answer with more than ${LIMITS.allTrendBuckets / LIMITS.trendBuckets} checks.`,
      ),
    },
    {},
    "How one check is doing.",
  ),
  DefectStatistics: object(
    {
      type: nullable(text("Kind of finding, as its producer calls it."), "for findings without one"),
      defects: count("Findings of this kind."),
      runs: count("Runs with at least one."),
      severity: {
        type: "object",
        additionalProperties: { type: "integer", minimum: 1 },
        description: "How many of them have each severity. Those without one are not counted here.",
      },
    },
    {},
    "Findings of one kind.",
  ),
  ProgramStatisticsResponse: object(
    {
      program_id: uuid("The program."),
      completed_since: nullable(time("As asked for."), "if it was not"),
      completed_until: nullable(time("As asked for."), "if it was not"),
      runs: ref(
        "RunCounts",
        "The runs that ended in this time, with this serial number. `check` does not change them.",
      ),
      first_pass_yield: figure(
        "Of the parts whose first inspection (`revision` 1) has an outcome, the share that passed it. A part is a serial number; a run " +
          "without one is a part of its own. At a hub each cell counts revisions for itself: of those with `revision` 1, the first " +
          "inspection is the one that ended first.",
        "if there is no such part",
      ),
      final_yield: figure(
        "Of the parts whose newest inspection has an outcome, the share that passed it. Failed and cancelled runs have none. The newest " +
          "inspection is the one that was created last, at a hub on whichever cell.",
        "if there is no such part",
      ),
      duration_seconds: ref("DurationStatistics", "How long the completed runs took."),
      checks: listOf("CheckStatistics", "The checks of the completed runs, by name."),
      defects: listOf("DefectStatistics", "The defects of the completed runs, the most frequent kind first."),
    },
    {},
    "How a program is doing.",
  ),
};
