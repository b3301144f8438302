/** How many runs of each outcome were made since a time. */
import { getJson, queryOf, type RunList } from "./api.js";

export interface DayCounts {
  passed: number;
  failed: number;
  indeterminate: number;
  /** Runs that broke off. */
  brokeOff: number;
}

type Filter = Readonly<Record<string, string>>;

/** Where the search of the last time ended: the next one hardly ever goes far from there. */
const found = new Map<string, number>();

/**
 * Number of matching runs that were created at `sinceMs` or later. The list is ordered by creation, newest first, so that a few looks at
 * single entries find the place where it passes that time.
 */
export async function countSince(filter: Filter, sinceMs: number, signal?: AbortSignal): Promise<number> {
  const key = JSON.stringify([filter, sinceMs]);
  let total = Number.POSITIVE_INFINITY;
  const isSince = async (offset: number): Promise<boolean> => {
    if (offset >= total) return false;
    const page = await getJson<RunList>(`/runs${queryOf({ ...filter, limit: 1, offset })}`, signal);
    total = page.total;
    const [run] = page.runs;
    return run !== undefined && Date.parse(run.created_at) >= sinceMs;
  };
  let low = 0;
  let high = found.get(key) ?? 0;
  let stride = 1;
  while (await isSince(high)) {
    low = high + 1;
    high += stride;
    stride *= 2;
  }
  // A shorter way down from the place of last time, if that is where it still is.
  if (high > low && (await isSince(high - 1))) low = high;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (await isSince(middle)) low = middle + 1;
    else high = middle;
  }
  found.set(key, low);
  return low;
}

export async function countDay(since: string, signal?: AbortSignal): Promise<DayCounts> {
  const sinceMs = Date.parse(since);
  const completed = (quality_status: string) => countSince({ status: "completed", quality_status }, sinceMs, signal);
  const [passed, failed, indeterminate, brokeOff] = await Promise.all([
    completed("passed"),
    completed("failed"),
    completed("indeterminate"),
    countSince({ status: "failed" }, sinceMs, signal),
  ]);
  return { passed, failed, indeterminate, brokeOff };
}
