import type { Client } from "openapi-fetch";
import type { components, operations, paths } from "./interface-types.js";
import { ServiceRequestError } from "./service-request-error.js";

type Run = components["schemas"]["ProgramRunSummaryResponse"];
type Query = NonNullable<operations["listRuns"]["parameters"]["query"]>;

/** Runs of one request. */
const PAGE_RUNS = 500;

export interface SyncOptions {
  /** The mark that the last sync resolved with. Undefined: all runs. Any time in ISO 8601 is a mark. */
  since?: string | undefined;
  /** Only runs that match. There is no filter by status: a run that leaves it while pages are read would shift the others. */
  filter?: Pick<Query, "program_id" | "serial_number">;
  signal?: AbortSignal;
}

/** Does what `ServiceClient.sync` says. */
export async function syncRuns(
  api: Client<paths>,
  { since, filter, signal }: SyncOptions,
  apply: (runs: readonly Run[]) => unknown,
): Promise<string | undefined> {
  // A run that changes while the later pages are read has a later time than all of the first page. So the next sync brings it.
  let mark = since;
  for (let offset = 0, total = 1; offset < total; ) {
    const query = { ...filter, limit: PAGE_RUNS, offset, ...(since !== undefined && { updated_since: since }) };
    const { data, error, response } = await api.GET("/runs", {
      params: { query },
      ...(signal !== undefined && { signal }),
    });
    if (data === undefined) throw new ServiceRequestError(response.status, error);
    if (offset === 0)
      for (const run of data.runs) if (mark === undefined || run.updated_at > mark) mark = run.updated_at;
    if (data.runs.length > 0) await apply(data.runs);
    offset += data.runs.length;
    total = data.runs.length === 0 ? 0 : data.total;
  }
  return mark;
}
