import type { ComponentRow } from "../core/health.js";
import type { RecorderErrorData } from "../workers/recorder/recorder-messages.js";

/** The service's rows once its recorder is gone: what it kept is as it was, what it did is down. */
export function rowsWithoutRecorder(rows: readonly ComponentRow[], error: RecorderErrorData): ComponentRow[] {
  const down = { id: null, status: "down", detail: error.message, enabled: null, required: true } as const;
  const others = rows.filter(({ key }) => key !== "log" && key !== "recorder");
  return [{ ...down, key: "log" }, { ...down, key: "recorder" }, ...others];
}
