import { uuidV7TimeMs } from "../../core/identifiers.js";
import type { StoredKind } from "../../core/run/run-state.js";

/**
 * The two files that a run has beside its records. `capture` (ending .cap) holds frames, series and what was made from them; retention removes
 * it. `report` (ending .rep) holds reports, which stay.
 */
export type CaptureKind = "capture" | "report";

const ENDINGS = { capture: "cap", report: "rep" } as const;

export const FILE_OF_KIND: Readonly<Record<StoredKind, CaptureKind>> = { captures: "capture", reports: "report" };

/**
 * `<yyyymm>/<run id>-000.<cap|rep>`, relative to the captures folder. The month (UTC) comes from the run's id, so the path follows from the id,
 * and no folder grows without bound. The number 000 is for a later release that continues a run in another file.
 */
export function capturePath(runId: string, kind: CaptureKind): string {
  return `${captureMonth(runId)}/${runId}-000.${ENDINGS[kind]}`;
}

/** The folder of the run's files: `yyyymm`. */
export function captureMonth(runId: string): string {
  return monthOf(uuidV7TimeMs(runId));
}

/** `yyyymm` in UTC of a time in milliseconds since the Unix epoch. */
export function monthOf(timeMs: number): string {
  const time = new Date(timeMs);
  return `${String(time.getUTCFullYear()).padStart(4, "0")}${String(time.getUTCMonth() + 1).padStart(2, "0")}`;
}
