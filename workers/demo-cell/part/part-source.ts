import { generateUuidV7 } from "../../../core/identifiers.js";
import { createRandom, type Random } from "../../../core/random.js";
import type { Defect, QualityCheck, ReportStatus } from "../../../core/run/quality.js";
import type { Capture } from "../steps/capture.js";

/** What the co-processor finds in one part's capture. */
export interface Inspection {
  capture: Capture;
  checks: QualityCheck[];
  /** The findings, with regions in the files of this frame. */
  defects(frameId: string): Defect[];
}

/** What the next part must be like. */
export interface PartWish {
  /** The result of its inspection; undefined: as it comes. */
  outcome?: ReportStatus | undefined;
  isFlawed?: boolean;
  /** True: nothing of it is measured. */
  isUnseen?: boolean;
}

/** Where the parts of a program come from. */
export interface PartSource {
  serialPrefix: string;
  /** Inspects the next part. It is as wanted if the source can make it so. Undefined for a program without captures. */
  inspect(random: Random, wish: PartWish): Promise<Inspection | undefined>;
}

/** Makes a number from a text, the same on every machine (FNV-1a, 32 bits). */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

/**
 * An id that is the same after a restart, so that a program that is put again replaces itself. Its time is 2026-01-01.
 */
export function stableId(key: string): string {
  return generateUuidV7(Date.UTC(2026, 0, 1), createRandom(hashText(key)).bytes(10));
}

/**
 * A check of a length against its nominal value. Beyond 80 % of the threshold it warns, and beyond the threshold it
 * fails.
 */
export function lengthCheck(name: string, valueMm: number, nominalMm: number, thresholdMm: number): QualityCheck {
  const round = (mm: number): number => Math.round(mm * 1e5) / 1e5;
  const asked = { name, nominal: nominalMm, threshold: thresholdMm, canonical_units: "mm" } as const;
  if (!Number.isFinite(valueMm)) {
    return { ...asked, status: "not_evaluated", message: "no valid points where the length is measured" };
  }
  const value = round(valueMm);
  const delta = round(value - nominalMm);
  const share = Math.abs(delta) / thresholdMm;
  const status = share > 1 ? "failed" : share > 0.8 ? "warning" : "passed";
  const check: QualityCheck = { ...asked, status, value, delta };
  const side = delta < 0 ? "below" : "above";
  if (status === "failed")
    check.message = `${Math.abs(delta)} mm ${side} nominal; at most ${thresholdMm} mm is allowed`;
  if (status === "warning") check.message = `${Math.round(share * 100)} % of the threshold used`;
  return check;
}

/** A check of a share (0 to 1) that must reach a threshold. */
export function shareCheck(name: string, value: number, threshold: number): QualityCheck {
  const rounded = Math.round(value * 1e4) / 1e4;
  const status = rounded >= threshold ? "passed" : "failed";
  const message = status === "failed" && `at least ${threshold} is needed`;
  return { name, status, value: rounded, threshold, canonical_units: "unspecified", ...(message && { message }) };
}

/** Median of those values that are numbers; NaN if there are none. It sorts them in place. */
export function medianOf(values: Float64Array | Float32Array): number {
  const valid = values.filter((value) => !Number.isNaN(value)).sort();
  return valid[valid.length >> 1] ?? Number.NaN;
}
