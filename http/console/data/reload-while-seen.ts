import { useEffect } from "preact/hooks";
import type { Resource } from "./resource.js";

const PERIOD_MS = 10_000;
/** While a delivery is under way. */
export const PENDING_MS = 2_000;

/** Reads the resource again every few seconds while the page can be seen: for data whose changes no stream tells. @param periodMs null: not now */
export function useReloadWhileSeen(resource: Resource<unknown>, periodMs: number | null = PERIOD_MS): void {
  useEffect(() => {
    if (periodMs === null) return;
    const timer = setInterval(() => document.hidden || void resource.reload(), periodMs);
    return () => clearInterval(timer);
  }, [resource, periodMs]);
}
