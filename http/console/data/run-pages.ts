/** Pages of the list of runs, also between two times. */
import { getJson, queryOf, type RunList, type RunSummary } from "./api.js";
import { countSince } from "./counts.js";

export interface RunFilter {
  program_id?: string;
  status?: string;
  quality_status?: string;
  serial_number?: string;
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
    toMs === undefined ? 0 : countSince(words, toMs, signal),
    fromMs === undefined ? Number.POSITIVE_INFINITY : countSince(words, fromMs, signal),
  ]);
  const offset = first + (page - 1) * RUNS_A_PAGE;
  const list = await getJson<RunList>(`/runs${queryOf({ ...words, limit: RUNS_A_PAGE, offset })}`, signal);
  const total = Math.max(0, Math.min(list.total, last) - first);
  return { runs: list.runs.slice(0, Math.max(0, first + total - offset)), total };
}
