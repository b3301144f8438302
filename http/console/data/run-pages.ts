/** Pages of the list of runs, also between two times, and how many runs were made since a time. */
import { getJson, queryOf, type RunList, type RunSummary } from "./api.js";
import { countSince } from "./counts.js";

export interface RunFilter {
  program_id?: string;
  status?: string;
  quality_status?: string;
  serial_number?: string;
  cell?: string;
}

export interface RunPageQuery {
  filter: RunFilter;
  /** Milliseconds since the epoch, of the creation; undefined: no bound. */
  fromMs: number | undefined;
  toMs: number | undefined;
  /** From 1. */
  page: number;
}

export interface RunPage {
  runs: RunSummary[];
  /** Runs on all pages. */
  total: number;
}

export const RUNS_A_PAGE = 50;

/**
 * The interface filters by the time of the last change only. But lists are ordered by creation, so that a range of it is a range of the list.
 */
export async function readRunPage(
  { filter, fromMs, toMs, page }: RunPageQuery,
  signal?: AbortSignal,
): Promise<RunPage> {
  const words = Object.fromEntries(Object.entries(filter).filter(([, value]) => value));
  const [first, last] = await Promise.all([
    toMs === undefined ? 0 : countRunsSince(words, toMs, signal),
    fromMs === undefined ? Number.POSITIVE_INFINITY : countRunsSince(words, fromMs, signal),
  ]);
  const offset = first + (page - 1) * RUNS_A_PAGE;
  const list = await getJson<RunList>(`/runs${queryOf({ ...words, limit: RUNS_A_PAGE, offset })}`, signal);
  const total = Math.max(0, Math.min(list.total, last) - first);
  return { runs: list.runs.slice(0, Math.max(0, first + total - offset)), total };
}

/** Where the search of the last time ended: the next one hardly ever goes far from there. */
const found = new Map<string, number>();

/** Number of matching runs that were created at `sinceMs` or later. */
async function countRunsSince(
  filter: Readonly<Record<string, string>>,
  sinceMs: number,
  signal?: AbortSignal,
): Promise<number> {
  const key = JSON.stringify([filter, sinceMs]);
  const look = (offset: number) => getJson<RunList>(`/runs${queryOf({ ...filter, limit: 1, offset })}`, signal);
  const count = await countSince(look, sinceMs, found.get(key) ?? 0);
  found.set(key, count);
  return count;
}

/** How many runs of each outcome were made. */
export interface DayCounts {
  passed: number;
  failed: number;
  indeterminate: number;
  /** Runs that broke off. */
  brokeOff: number;
}

export async function countDay(since: string, signal?: AbortSignal): Promise<DayCounts> {
  const sinceMs = Date.parse(since);
  const completed = (quality_status: string) =>
    countRunsSince({ status: "completed", quality_status }, sinceMs, signal);
  const [passed, failed, indeterminate, brokeOff] = await Promise.all([
    completed("passed"),
    completed("failed"),
    completed("indeterminate"),
    countRunsSince({ status: "failed" }, sinceMs, signal),
  ]);
  return { passed, failed, indeterminate, brokeOff };
}
