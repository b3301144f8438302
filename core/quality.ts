import type { JsonObject } from "./json.js";

export const CHECK_STATUSES = ["passed", "failed", "warning", "not_evaluated", "error"] as const;
export type CheckStatus = (typeof CHECK_STATUSES)[number];

export const CANONICAL_UNITS = ["mm", "unspecified"] as const;
export type CanonicalUnits = (typeof CANONICAL_UNITS)[number];

/** A quality check; value, nominal, delta and threshold are millimetres unless canonical_units says unspecified. */
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

export const REPORT_STATUSES = ["passed", "failed", "indeterminate"] as const;
export type ReportStatus = (typeof REPORT_STATUSES)[number];
/** How lists are asked for runs without a report. */
export const NO_REPORT = "none";

export interface QualityReport {
  status: ReportStatus;
  checks: QualityCheck[];
  defects: Defect[];
  summary: string | null;
}

/** QC outcome of at least one check (decisions.md, QC): failed, else indeterminate, else passed. A warning passes. */
export function reportStatus(checks: readonly QualityCheck[]): ReportStatus {
  if (checks.some((check) => check.status === "failed")) return "failed";
  if (checks.some((check) => check.status === "not_evaluated" || check.status === "error")) return "indeterminate";
  return "passed";
}

const FROM_BEST_TO_WORST = [null, "passed", "indeterminate", "failed"] as const;

/** The outcome of two lists of checks together, by the outcome of each; null: a list without checks. */
export function worseStatus(a: ReportStatus | null, b: ReportStatus | null): ReportStatus | null {
  return FROM_BEST_TO_WORST.indexOf(a) > FROM_BEST_TO_WORST.indexOf(b) ? a : b;
}

/** The report over what counts of a run; null without checks. */
export function qualityReport(
  checks: readonly QualityCheck[],
  defects: readonly Defect[],
  summary: string | null,
): QualityReport | null {
  if (checks.length === 0) return null;
  return { status: reportStatus(checks), checks: [...checks], defects: [...defects], summary };
}
