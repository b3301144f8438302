import { EventParser } from "./event-parser.js";
import type { components, operations } from "./interface-types.js";
import { isPassing, pause, refusalOf, ServiceRequestError } from "./service-request-error.js";
import { SilenceWatch } from "./silence-watch.js";

type Schemas = components["schemas"];

/** What a stream of changed runs tells. `mark`: everything up to here is told. */
export type RunEvent =
  /** The stream is open: now, and after each break. */
  | { readonly type: "ready"; readonly mark: string; readonly serviceVersion: string }
  /** A run has changed; its newest state. */
  | { readonly type: "run"; readonly mark: string; readonly run: Schemas["ProgramRunSummaryResponse"] }
  /** The service does not know the mark, because its store was replaced: list the runs anew. */
  | { readonly type: "reset"; readonly mark: string; readonly reason: string };

type Query = NonNullable<operations["followRuns"]["parameters"]["query"]>;

export interface FollowOptions {
  /** Only runs that match. Names as in the interface. */
  filter?: Pick<Query, "program_id" | "status" | "serial_number">;
  /** The mark to go on from; undefined: now. */
  since?: string | undefined;
  signal?: AbortSignal;
  /** Called when the connection has broken, and when the service cannot take it now. The next event means that it is open again. */
  onBreak?(): void;
}

export interface Connection {
  baseUrl: string;
  headers: Readonly<Record<string, string>>;
  fetch(url: string, init: RequestInit): Promise<Response>;
}

/** Pause before the next attempt, if the service has said nothing. It doubles with each attempt that fails, up to the longest. */
const RETRY_MS = 2_000;
const LONGEST_RETRY_MS = 10_000;

/** Does what `ServiceClient.changes` says. */
export async function* followRuns(
  connection: Connection,
  { filter = {}, since, signal, onBreak }: FollowOptions,
): AsyncGenerator<RunEvent, void, undefined> {
  let mark = since;
  let retryMs = RETRY_MS;
  let failures = 0;
  while (!signal?.aborted) {
    const attempt = new Attempt(signal);
    try {
      const response = await attempt.open(connection, address(connection.baseUrl, filter, mark), mark);
      if (typeof response === "number") {
        onBreak?.();
        await pause(response, signal);
        continue;
      }
      for await (const event of attempt.events(response)) {
        failures = 0;
        retryMs = attempt.retryMs ?? retryMs;
        mark = event.mark;
        yield event;
        if (signal?.aborted) return;
      }
    } catch (error) {
      if (error instanceof ServiceRequestError) throw error;
      // Everything else is a break of the connection.
    } finally {
      attempt.close();
    }
    if (signal?.aborted) return;
    onBreak?.();
    await pause(Math.min(retryMs * 2 ** failures++, LONGEST_RETRY_MS), signal);
  }
}

function address(baseUrl: string, filter: Record<string, string | undefined>, mark: string | undefined): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...filter, updated_since: mark })) {
    if (value !== undefined) query.set(name, value);
  }
  return `${baseUrl}/runs/changes?${query}`;
}

/** One attempt to connect, and its stream. */
class Attempt {
  readonly #watch: SilenceWatch;
  readonly #parser = new EventParser();

  constructor(signal: AbortSignal | undefined) {
    this.#watch = new SilenceWatch(signal);
  }

  get retryMs(): number | undefined {
    return this.#parser.retryMs;
  }

  /** The open stream; or, if the service cannot take it now, the milliseconds to wait. @throws ServiceRequestError */
  async open({ headers, fetch }: Connection, url: string, mark: string | undefined): Promise<Response | number> {
    const response = await fetch(url, {
      headers: { ...headers, Accept: "text/event-stream", ...(mark !== undefined && { "Last-Event-ID": mark }) },
      signal: this.#watch.signal,
    });
    if (response.ok) return response;
    const refusal = await refusalOf(response);
    if (!isPassing(response.status)) throw refusal;
    const seconds = Number(response.headers.get("Retry-After"));
    return seconds > 0 ? seconds * 1000 : RETRY_MS;
  }

  async *events(response: Response): AsyncGenerator<RunEvent, void, undefined> {
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const decoder = new TextDecoder();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      this.#watch.begin();
      for (const { id, name, data } of this.#parser.push(decoder.decode(value, { stream: true }))) {
        const event = runEvent(name, id, data);
        if (event !== undefined) yield event;
      }
    }
  }

  close(): void {
    this.#watch.close();
  }
}

/** Undefined for an event that a later release may add. */
function runEvent(type: string, mark: string, data: string): RunEvent | undefined {
  if (type === "run") return { type, mark, run: JSON.parse(data) as Schemas["ProgramRunSummaryResponse"] };
  if (type === "ready") {
    return { type, mark, serviceVersion: (JSON.parse(data) as { service_version: string }).service_version };
  }
  if (type === "reset") return { type, mark, reason: (JSON.parse(data) as { reason: string }).reason };
  return undefined;
}
