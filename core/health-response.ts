import { type ComponentRow, rollUpHealth } from "./health.js";

/** The body of GET /health; the status decides between 200 and 503 (`down`). */
export function healthResponse(rows: readonly ComponentRow[]) {
  const components: Record<string, Omit<ComponentRow, "key" | "required">> = {};
  for (const { key, status, id, detail, enabled } of rows) components[key] = { status, id, detail, enabled };
  return { status: rollUpHealth(rows), components };
}
