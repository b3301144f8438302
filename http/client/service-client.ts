import createClient, { type Client } from "openapi-fetch";
import { type DownloadOptions, download } from "./download.js";
import { type FollowOptions, followRuns, type RunEvent } from "./follow-runs.js";
import type { components, paths } from "./interface-types.js";
import { type SyncOptions, syncRuns } from "./sync-runs.js";

export type { DownloadOptions } from "./download.js";
export type { FollowOptions, RunEvent } from "./follow-runs.js";
export type { components, operations, paths } from "./interface-types.js";
export { ServiceRequestError } from "./service-request-error.js";
export type { SyncOptions } from "./sync-runs.js";

export interface ServiceClientOptions {
  /** Address of the service, without a slash at its end; empty in a page that the service itself serves. */
  baseUrl: string;
  /** Undefined: the service needs none. It goes into a header, never into an address. */
  apiKey?: string | undefined;
  /** Default: the global one. */
  fetch?: typeof fetch;
}

export interface ServiceClient {
  /** Requests by path, typed: `client.api.GET("/runs/{run_id}", { params: { path: { run_id } } })`. */
  readonly api: Client<paths>;
  /**
   * Reads the runs that changed after a mark, and gives them to `apply`, page by page. A run may come twice: keep the newest `updated_at` of each id.
   *
   * @returns the mark for the next sync, once `apply` has taken all pages; that of `since` if nothing changed
   * @throws ServiceRequestError when the service refuses a page, what `fetch` throws when it cannot be reached, and what `apply` throws: sync again
   *   from the old mark
   */
  sync(
    options: SyncOptions,
    apply: (runs: readonly components["schemas"]["ProgramRunSummaryResponse"][]) => unknown,
  ): Promise<string | undefined>;
  /**
   * Follows the runs that change. After a break it connects again and goes on from its mark, so nothing is missed. It ends when `signal` is aborted.
   *
   * Wait for the first `ready`, then list the runs, then apply each `run` by its id. After a `reset`, list anew. With a filter, a run that no longer
   * matches comes once more: remove it.
   *
   * @throws ServiceRequestError when the service refuses the request for good, such as for a wrong filter or key
   */
  changes(options?: FollowOptions): AsyncGenerator<RunEvent, void, undefined>;
  /**
   * The bytes of a file, in order. After a break it goes on where it was, with as many attempts as bring bytes.
   *
   * @param path as in an answer's `file_path`, or such as `/runs/{run_id}/files/{name}`
   * @throws ServiceRequestError when the service refuses it: 404 if there is no such file, 412 if it changed after a break
   */
  download(path: string, options?: DownloadOptions): AsyncGenerator<Uint8Array, void, undefined>;
}

export function createServiceClient({
  baseUrl,
  apiKey,
  fetch = globalThis.fetch,
}: ServiceClientOptions): ServiceClient {
  const headers: Record<string, string> = apiKey === undefined ? {} : { Authorization: `Bearer ${apiKey}` };
  const connection = { baseUrl, headers, fetch };
  const api = createClient<paths>(connection);
  return {
    api,
    sync: (options, apply) => syncRuns(api, options, apply),
    changes: (options = {}) => followRuns(connection, options),
    download: (path, options = {}) => download(connection, path, options),
  };
}
