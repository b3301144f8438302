import type { Random } from "../../../core/random.js";
import { formatTimeUs } from "../../../core/timestamps.js";
import type { RunListQuery, View } from "../../../storage/view/view.js";
import { createdAtUs, type RunStore, serialNumberText } from "../run-store.js";

export const PAGE = 50;

/** Each filter alone, and none. */
export const FILTERS = ["none", "program", "status", "serial", "updated"] as const;
export type Filter = (typeof FILTERS)[number];

/** Those that a run of `prepareRunStore` can have ended with. */
const STATUSES = ["completed", "failed", "cancelled"] as const;

/** A page of runs, as the view takes it and as a client asks for it. */
export interface ListQuery {
  filters: Omit<RunListQuery, "offset" | "limit">;
  offset: number;
  /** Without its question mark. */
  text: string;
}

export function listQuery(filters: ListQuery["filters"], offset: number): ListQuery {
  const parameters = new URLSearchParams({ limit: `${PAGE}`, offset: `${offset}` });
  if (filters.programId !== undefined) parameters.set("program_id", filters.programId);
  if (filters.status !== undefined) parameters.set("status", filters.status);
  if (filters.serialNumber !== undefined) parameters.set("serial_number", filters.serialNumber);
  if (filters.updatedSinceUs !== undefined) parameters.set("updated_since", formatTimeUs(filters.updatedSinceUs));
  return { filters, offset, text: parameters.toString() };
}

/** `count` queries with this filter, its value and the offset uniformly random: every page that has a run is as likely. */
export async function randomQueries(
  view: View,
  store: RunStore,
  filter: Filter,
  count: number,
  random: Random,
): Promise<ListQuery[]> {
  const queries: ListQuery[] = [];
  while (queries.length < count) {
    const filters = filtersOf(filter, store, random);
    const { total } = await view.listRuns({ ...filters, offset: 0, limit: 0 }, "");
    if (total > 0) queries.push(listQuery(filters, random.integer(0, total - 1)));
  }
  return queries;
}

function filtersOf(filter: Filter, store: RunStore, random: Random): ListQuery["filters"] {
  switch (filter) {
    case "none":
      return {};
    case "program":
      return { programId: random.pick(store.programIds) };
    case "status":
      return { status: random.pick(STATUSES) };
    case "serial":
      return { serialNumber: serialNumberText(random.integer(1, store.serialNumbers)) };
    case "updated":
      return { updatedSinceUs: createdAtUs(random.integer(0, store.runs - 1)) };
  }
}
