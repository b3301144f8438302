import { valuesOf } from "../json/closed-set.js";
import type { JsonObject } from "../json/json.js";

export const CHECK_STATUS_MEANINGS = {
  passed: "the part meets the check.",
  failed: "the part does not meet it: the report is failed.",
  warning: "the part meets it, but narrowly. It counts as passed.",
  not_evaluated:
    "the check could not be made, for example because data is missing. The report is indeterminate unless another check failed.",
  error: "the check broke off with an error. The report is indeterminate unless another check failed.",
} as const;
export type CheckStatus = keyof typeof CHECK_STATUS_MEANINGS;
export const CHECK_STATUSES = valuesOf(CHECK_STATUS_MEANINGS);

export const CANONICAL_UNIT_MEANINGS = {
  mm: "`value`, `nominal`, `delta` and `threshold` are millimetres.",
  unspecified: "they are in another unit, or in none, such as a share or a score.",
} as const;
export type CanonicalUnits = keyof typeof CANONICAL_UNIT_MEANINGS;
export const CANONICAL_UNITS = valuesOf(CANONICAL_UNIT_MEANINGS);

/** A quality check. Its value, nominal, delta and threshold are millimetres unless canonical_units says unspecified. */
export interface QualityCheck {
  name: string;
  status: CheckStatus;
  message?: string | null;
  value?: number | null;
  nominal?: number | null;
  delta?: number | null;
  threshold?: number | null;
  canonical_units?: CanonicalUnits;
  metadata?: JsonObject;
}

export interface DefectRegion2d {
  file?: string | null;
  bbox?: number[] | null;
}

/** Oriented bounding box in scan space. */
export interface DefectRegion3d {
  file?: string | null;
  location?: number[] | null;
  extents?: number[] | null;
  orientation?: number[] | null;
  frame?: string | null;
}

/** An informational finding: it never changes the QC outcome. */
export interface Defect {
  id?: string | null;
  type?: string;
  description?: string | null;
  region_2d?: DefectRegion2d | null;
  region_3d?: DefectRegion3d | null;
  confidence?: number | null;
  severity?: string | null;
  metadata?: JsonObject;
}

export const REPORT_STATUS_MEANINGS = {
  passed: "every check passed, or passed with a warning.",
  failed: "at least one check failed.",
  indeterminate: "no check failed, but at least one is `not_evaluated` or `error`.",
} as const;
export type ReportStatus = keyof typeof REPORT_STATUS_MEANINGS;
export const REPORT_STATUSES = valuesOf(REPORT_STATUS_MEANINGS);
/** The filter value with which a list selects runs without a report. */
export const NO_REPORT = "none";

/** QC outcome of one or more checks: the first of failed, indeterminate, passed that applies. A warning passes. */
export function reportStatus(checks: readonly QualityCheck[]): ReportStatus {
  if (checks.some((check) => check.status === "failed")) return "failed";
  if (checks.some((check) => check.status === "not_evaluated" || check.status === "error")) return "indeterminate";
  return "passed";
}

const FROM_BEST_TO_WORST = [null, "passed", "indeterminate", "failed"] as const;

/** The outcome of two lists of checks together, from the outcome of each. Null is the outcome of a list without checks. */
export function worseStatus(a: ReportStatus | null, b: ReportStatus | null): ReportStatus | null {
  return FROM_BEST_TO_WORST.indexOf(a) > FROM_BEST_TO_WORST.indexOf(b) ? a : b;
}
