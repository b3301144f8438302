import { uuidV7TimeMs } from "../core/identifiers.js";

/**
 * What a run stores beside its records, in two files: `capture` (ending .cap) takes frames and series, which retention removes;
 * `report` (ending .rep) takes the bytes of file.put, which stay.
 */
export type CaptureKind = "capture" | "report";

const ENDINGS = { capture: "cap", report: "rep" } as const;

/**
 * `<yyyymm>/<run id>-000.<cap|rep>` below the captures folder. The month is the run id's own (UTC), so that the path follows from the id,
 * and no folder grows without bound. The number leaves room for a run's bytes to be continued in another file.
 */
export function capturePath(runId: string, kind: CaptureKind): string {
  return `${captureMonth(runId)}/${runId}-000.${ENDINGS[kind]}`;
}

function captureMonth(runId: string): string {
  const time = new Date(uuidV7TimeMs(runId));
  return `${String(time.getUTCFullYear()).padStart(4, "0")}${String(time.getUTCMonth() + 1).padStart(2, "0")}`;
}
