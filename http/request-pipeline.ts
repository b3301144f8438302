import { ServiceError } from "../core/service-errors.js";
import { isReadDamage } from "../storage/read-damage.js";
import type { StorageError } from "../storage/storage-error.js";
import { errorReply } from "./error-reply.js";
import { PathRouter } from "./path-router.js";
import { parseQuery, type QueryParameters, type QueryValues } from "./query-parameters.js";
import type { Reply } from "./reply.js";
import { framingFault } from "./request-framing.js";
import type { RequestHeaders } from "./request-headers.js";
import type { HandlerRequest, Route } from "./route.js";
import type { ServiceLog } from "./service-log.js";
import { freshTraceId, traceIdOf } from "./trace-id.js";

/** A request as a server read it from the wire; complete before the first asynchronous step. */
export interface IncomingRequest {
  /** In upper case. */
  readonly method: string;
  /** Raw, with its leading slash. */
  readonly path: string;
  /** Raw, without the question mark; empty without a query. */
  readonly query: string;
  readonly headers: RequestHeaders;
  isAborted(): boolean;
}

export interface RequestPipelineOptions {
  routes: readonly Route[];
  /** What absolute links start with; undefined: the request's Host. */
  baseUrl: string | undefined;
  log: ServiceLog;
  /** Told of every request that failed because stored bytes are damaged or missing. */
  onReadDamage?: (error: StorageError) => void;
}

export function requestTraceId(headers: RequestHeaders): string {
  const traceparent = headers.get("traceparent");
  return (traceparent === undefined ? undefined : traceIdOf(traceparent)) ?? freshTraceId();
}

/**
 * What every request goes through on every server: framing guard, route, parameters, handler, errors as envelopes, log lines. It never
 * throws and its promise never rejects.
 */
export class RequestPipeline {
  readonly #router: PathRouter;
  readonly #baseUrl: string | undefined;
  readonly #log: ServiceLog;
  readonly #onReadDamage: (error: StorageError) => void;
  readonly #logsRequests: boolean;

  constructor(options: RequestPipelineOptions) {
    this.#router = new PathRouter(options.routes);
    this.#baseUrl = options.baseUrl;
    this.#log = options.log;
    this.#onReadDamage = options.onReadDamage ?? (() => {});
    // Asked once: with request lines off, a request pays nothing for them.
    this.#logsRequests = options.log.isLevelEnabled("debug");
  }

  handle(incoming: IncomingRequest, traceId: string): Reply | Promise<Reply> {
    const startedMs = performance.now();
    let reply: Reply | Promise<Reply>;
    try {
      reply = this.#dispatch(incoming, traceId);
    } catch (error) {
      reply = this.failure(error, incoming, traceId);
    }
    if (reply instanceof Promise) {
      return reply
        .catch((error: unknown) => this.failure(error, incoming, traceId))
        .then((done) => this.#logged(done, incoming, traceId, startedMs));
    }
    return this.#logged(reply, incoming, traceId, startedMs);
  }

  #dispatch(incoming: IncomingRequest, traceId: string): Reply | Promise<Reply> {
    const fault = framingFault(incoming.headers);
    if (fault !== undefined) return { ...errorReply(fault.data, traceId), closeConnection: true };
    const { route, params } = this.#router.find(incoming.method, incoming.path);
    const query = parseQuery(route.query, incoming.query);
    const baseUrl = this.#baseUrl ?? `http://${incoming.headers.get("host")}`;
    return route.handle(new PipelineRequest(incoming, params, query, baseUrl, traceId));
  }

  /** The envelope for whatever was thrown; what has no name in the catalogue is logged, and shown as internal_error. */
  failure(error: unknown, incoming: IncomingRequest, traceId: string): Reply {
    if (error instanceof ServiceError && error.data.code !== "internal_error") return errorReply(error.data, traceId);
    this.#log.error(
      { trace_id: traceId, method: incoming.method, path: incoming.path, err: error },
      "a request failed inside the service",
    );
    if (isReadDamage(error)) {
      this.#onReadDamage(error);
      const { code, message, params } = error.data;
      const shown = `what is stored cannot be read: ${message}`;
      return errorReply({ code: "internal_error", message: shown, params: { cause: code, ...params } }, traceId);
    }
    return errorReply(
      { code: "internal_error", message: "the service failed; its log has this trace id", params: {} },
      traceId,
    );
  }

  /** Every answer has a line with its trace id at debug; one that is an error has it at info. */
  #logged(reply: Reply, incoming: IncomingRequest, traceId: string, startedMs: number): Reply {
    const isError = reply.status >= 400;
    if (!isError && !this.#logsRequests) return reply;
    const { method, path, query } = incoming;
    const durationMs = Math.round((performance.now() - startedMs) * 1000) / 1000;
    const line = { trace_id: traceId, method, path, query, status: reply.status, duration_ms: durationMs };
    if (isError) this.#log.info(line, "request");
    else this.#log.debug(line, "request");
    return reply;
  }
}

class PipelineRequest implements HandlerRequest {
  readonly #incoming: IncomingRequest;
  readonly params: Readonly<Record<string, string>>;
  readonly query: QueryValues<QueryParameters>;
  readonly baseUrl: string;
  readonly traceId: string;

  constructor(
    incoming: IncomingRequest,
    params: Record<string, string>,
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

  isAborted(): boolean {
    return this.#incoming.isAborted();
  }
}
