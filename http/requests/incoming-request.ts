import type { HeaderLines } from "../replies/reply.js";
import type { QueryParameters, QueryValues } from "./query-parameters.js";
import type { RequestHeaders } from "./request-headers.js";
import type { HandlerRequest, Route } from "./route.js";
import { freshTraceId, traceIdOf } from "./trace-id.js";

/** A request as a server has read it. It is complete before the first asynchronous step. */
export interface IncomingRequest {
  /** In upper case. */
  readonly method: string;
  /** Raw, with its leading slash. */
  readonly path: string;
  /** Raw, without the question mark; empty without a query. */
  readonly query: string;
  readonly headers: RequestHeaders;
  isAborted(): boolean;
  /** Address of the client; empty if the client is gone. */
  remoteAddress(): string;
  /** Calls back when the client leaves before it has the answer, and perhaps also after. Call it at most once. */
  whenAborted(listener: () => void): void;
  /**
   * The whole body, of the length that Content-Length gives. Call it at most once, before the pipeline returns.
   * @returns undefined if the client leaves before all of the body has arrived
   */
  readBody(lengthBytes: number): Promise<Uint8Array | undefined>;
  /** The pipeline's own fields, from here on. They are part of the request to save every request one object. */
  startedMs: number;
  route: Route | undefined;
  handled: { end(): void } | undefined;
  /** Header lines for this client only. They follow those of the reply, which may be cached and shared. */
  furtherHeaders: HeaderLines | undefined;
}

/** The trace id of a request: that of a valid `traceparent`, or a new one. */
export function requestTraceId(headers: RequestHeaders): string {
  const traceparent = headers.get("traceparent");
  return (traceparent === undefined ? undefined : traceIdOf(traceparent)) ?? freshTraceId();
}

/** A request as its handler sees it. */
export class PipelineRequest implements HandlerRequest {
  readonly #incoming: IncomingRequest;
  readonly params: Readonly<Record<string, string>>;
  readonly query: QueryValues<QueryParameters>;
  readonly baseUrl: string;
  readonly traceId: string;
  body: unknown;
  #gone: AbortController | undefined;

  constructor(
    incoming: IncomingRequest,
    params: Readonly<Record<string, string>>,
    query: QueryValues<QueryParameters>,
    baseUrl: string,
    traceId: string,
  ) {
    this.#incoming = incoming;
    this.params = params;
    this.query = query;
    this.baseUrl = baseUrl;
    this.traceId = traceId;
  }

  header(name: string): string | undefined {
    return this.#incoming.headers.get(name);
  }

  gone(): AbortSignal {
    if (this.#gone === undefined) {
      const gone = new AbortController();
      this.#gone = gone;
      if (this.#incoming.isAborted()) gone.abort();
      else this.#incoming.whenAborted(() => gone.abort());
    }
    return this.#gone.signal;
  }

  /** Tells the handler that nobody waits for the answer any more. */
  end(): void {
    this.#gone?.abort();
  }
}
