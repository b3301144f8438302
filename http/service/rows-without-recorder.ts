import { type ComponentRow, since } from "../../core/health.js";
import type { RecorderErrorData } from "../../workers/recorder/recorder-messages.js";

/** Components that end with the recorder. */
const ENDED_WITH_IT = ["log", "recorder", "dispatcher"];

/** The service's rows after the recorder has failed: its own components are down, the other rows stay as they were. */
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
