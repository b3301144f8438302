import { type ComponentRow, since } from "../../core/health.js";
import type { RecorderErrorData } from "../../workers/recorder/recorder-messages.js";

/** What the recorder does and runs. */
const ENDED_WITH_IT = ["log", "recorder", "dispatcher"];

/** The service's rows once its recorder is gone: what it kept is as it was, what it did is down. */
export function rowsWithoutRecorder(
  rows: readonly ComponentRow[],
  error: RecorderErrorData,
  endedAtUs: number,
): ComponentRow[] {
  const detail = since(endedAtUs, error.message);
  const down = { id: null, status: "down", detail, enabled: null, required: true } as const;
  const others = rows.filter(({ key }) => !ENDED_WITH_IT.includes(key));
  return [...ENDED_WITH_IT.map((key) => ({ ...down, key })), ...others];
}
