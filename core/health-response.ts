import { type ComponentRow, rollUpHealth } from "./health.js";
import type { ComponentStatusResponse, SystemStateResponse } from "./responses.js";

/** The body of GET /health; the status decides between 200 and 503 (`down`). */
export function healthResponse(rows: readonly ComponentRow[]): SystemStateResponse {
  const components: Record<string, ComponentStatusResponse> = {};
  for (const { key, status, id, detail, enabled } of rows) components[key] = { status, id, detail, enabled };
  return { status: rollUpHealth(rows), components };
}
