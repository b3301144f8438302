import { uuidV7TimeMs } from "../../core/identifiers.js";
import type { StoredKind } from "../../core/run/run-state.js";

/**
 * What a run stores beside its records, in two files: `capture` (ending .cap) takes frames, series and what was made from them, which
 * retention removes; `report` (ending .rep) takes reports, which stay.
 */
export type CaptureKind = "capture" | "report";

const ENDINGS = { capture: "cap", report: "rep" } as const;

/** The file of each kind of stored bytes. */
export const FILE_OF_KIND: Readonly<Record<StoredKind, CaptureKind>> = { captures: "capture", reports: "report" };

/**
 * `<yyyymm>/<run id>-000.<cap|rep>` below the captures folder. The month is the run id's own (UTC), so that the path follows from the id,
 * and no folder grows without bound. The number leaves room for a run's bytes to be continued in another file.
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
