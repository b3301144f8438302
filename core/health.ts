import { valuesOf } from "./json/closed-set.js";

export const COMPONENT_STATUS_MEANINGS = {
  healthy: "it works.",
  degraded: "it works, but not fully; `detail` says what is wrong.",
  down: "it does not work.",
  estopped: "it was stopped by an emergency stop.",
} as const;
export type ComponentStatusValue = keyof typeof COMPONENT_STATUS_MEANINGS;
export const COMPONENT_STATUSES = valuesOf(COMPONENT_STATUS_MEANINGS);

export const SYSTEM_STATUS_MEANINGS = {
  healthy: "every component is healthy.",
  degraded: "no required component is down, but at least one component is not healthy.",
  down: "a required component is down; the answer's status is 503.",
} as const;
export type SystemStatus = keyof typeof SYSTEM_STATUS_MEANINGS;

/** Keys of the service's own components. Producers may not put them. All are required but `plant`, which only a service with a plant has. */
export const OWN_COMPONENT_KEYS = ["log", "disk", "recorder", "dispatcher", "artefacts", "plant"] as const;

/** One row of health, put by a producer or by the service about itself. */
export interface ComponentRow {
  key: string;
  status: ComponentStatusValue;
  /** Only for multi-instance components such as robots and sensors. */
  id: string | null;
  detail: string | null;
  /** For robots: whether motion is enabled. Null for others. */
  enabled: boolean | null;
  required: boolean;
}

/** The detail of a condition that has lasted since `timeUs`. */
export function since(timeUs: number, what: string): string {
  return `since ${new Date(timeUs / 1000).toISOString()}: ${what}`;
}

/** The rollup: down if a required component is down, else degraded if any component is not healthy, else healthy. */
export function rollUpHealth(rows: Iterable<Pick<ComponentRow, "status" | "required">>): SystemStatus {
  let status: SystemStatus = "healthy";
  for (const row of rows) {
    if (row.required && row.status === "down") return "down";
    if (row.status !== "healthy") status = "degraded";
  }
  return status;
}
