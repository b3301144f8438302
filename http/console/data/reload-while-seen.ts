import { useEffect } from "preact/hooks";
import type { Resource } from "./resource.js";

const PERIOD_MS = 10_000;

/** Reads the resource again every few seconds while the page can be seen: for what nothing tells of. */
export function useReloadWhileSeen(resource: Resource<unknown>): void {
  useEffect(() => {
    const timer = setInterval(() => document.hidden || void resource.reload(), PERIOD_MS);
    return () => clearInterval(timer);
  }, [resource]);
}
