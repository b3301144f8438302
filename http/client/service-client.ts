import createClient, { type Client } from "openapi-fetch";
import { type FollowOptions, followRuns, type RunEvent } from "./follow-runs.js";
import type { paths } from "./interface-types.js";

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
   * Follows the runs that change. After a break it connects again and goes on from its mark, so nothing is missed. It ends when `signal` is aborted.
   *
   * Wait for the first `ready`, then list the runs, then apply each `run` by its id. After a `reset`, list anew. With a filter, a run that no longer
   * matches comes once more: remove it.
   *
   * @throws ServiceRequestError when the service refuses the request for good, such as for a wrong filter or key
   */
  changes(options?: FollowOptions): AsyncGenerator<RunEvent, void, undefined>;
}

export function createServiceClient({
  baseUrl,
  apiKey,
  fetch = globalThis.fetch,
}: ServiceClientOptions): ServiceClient {
  const headers: Record<string, string> = apiKey === undefined ? {} : { Authorization: `Bearer ${apiKey}` };
  return {
    api: createClient<paths>({ baseUrl, headers, fetch }),
    changes: (options = {}) => followRuns({ baseUrl, headers, fetch }, options),
  };
}
