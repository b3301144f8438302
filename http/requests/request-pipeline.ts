import { performance } from "node:perf_hooks";
import { LIMITS } from "../../core/limits.js";
import { type ErrorData, ServiceError } from "../../core/service-errors.js";
import { shortageOf } from "../../storage/disk/file-system.js";
import { isReadDamage } from "../../storage/log/read-damage.js";
import { fieldsWithRelativePaths, withRelativePaths } from "../../storage/relative-paths.js";
import type { StorageError } from "../../storage/storage-error.js";
import { RequestLog } from "../log/request-log.js";
import type { ServiceLog } from "../log/service-log.js";
import { acceptsGzip, compressedReply, isCompressible } from "../replies/compressed-reply.js";
import { conditionalReply } from "../replies/conditional-reply.js";
import { errorReply } from "../replies/error-reply.js";
import type { HeldBodies } from "../replies/held-bodies.js";
import { type HeaderLines, isStreamBody, type Reply } from "../replies/reply.js";
import type { AllowedHosts } from "./allowed-hosts.js";
import type { ApiKeys } from "./api-keys.js";
import { CrossOrigin } from "./cross-origin.js";
import { PathRouter } from "./path-router.js";
import { parseQuery, type QueryParameters, type QueryValues } from "./query-parameters.js";
import { mediaTypeFault, RequestBodyParser } from "./request-body.js";
import { framingFault, missingLength } from "./request-framing.js";
import type { RequestHeaders } from "./request-headers.js";
import type { HandlerRequest, Route } from "./route.js";
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
  /** Of the client's end of the connection; empty when that is gone. */
  remoteAddress(): string;
  /** Calls back when the client is gone before it has the answer; maybe also behind that. To be asked for at most once. */
  whenAborted(listener: () => void): void;
  /**
   * The whole body, of the length that the request's Content-Length says. To be asked for at most once, before the pipeline returns.
   * Undefined when the client is gone before all of it came.
   */
  readBody(lengthBytes: number): Promise<Uint8Array | undefined>;
  /** What the pipeline notes of it; in the request itself, since an object of its own would cost every request one more. */
  startedMs: number;
  route: Route | undefined;
  handled: { end(): void } | undefined;
  /** Lines of the answer that depend on who asks, behind those of the reply, which may be kept for others. */
  furtherHeaders: HeaderLines | undefined;
}

/** @param path of the route as declared, undefined when no route has the request's */
export type OnAnswer = (method: string, path: string | undefined, status: number, durationMs: number) => void;

export interface RequestPipelineOptions {
  routes: readonly Route[];
  /** What absolute links start with; undefined: the request's Host. */
  baseUrl: string | undefined;
  /** Of links that start with the request's Host. */
  scheme?: "http" | "https";
  log: ServiceLog;
  /** Told of every request that failed, before its answer or within, because stored bytes are damaged or missing. */
  onReadDamage?: (error: StorageError) => void;
  /** Told of an answer that failed for want of descriptors or memory. */
  onShortage?: (error: unknown) => void;
  /** What an answer leaves out of the paths of damaged files; undefined: nothing. */
  dataDirectory?: string;
  /** Undefined: no key is needed. */
  apiKeys?: ApiKeys | undefined;
  /** Undefined: any Host. */
  allowedHosts?: AllowedHosts | undefined;
  crossOrigin?: CrossOrigin;
  /** Told of every request once, when it is known what is sent. */
  onAnswer?: OnAnswer;
  /** How long a request may take until its answer begins: its body has come, and the handler has replied. */
  deadlineMs?: number;
}

/** A compressed form that takes longer saves the client nothing: by then it could have had the plain one, which is at hand. */
const COMPRESSION_MS = 2_000;

/** Bodies that are being read, of all clients together: 512 of the largest. */
const READING_LIMIT_BYTES = 32 * 1024 * 1024;
/** A body is small and comes at once, or its client stalls, which others need not wait out. */
const RETRY_AFTER_SECONDS = 1;

export function requestTraceId(headers: RequestHeaders): string {
  const traceparent = headers.get("traceparent");
  return (traceparent === undefined ? undefined : traceIdOf(traceparent)) ?? freshTraceId();
}

/**
 * What every request goes through on every server: framing guard, route, parameters, handler, errors as envelopes; then, when its answer
 * is known, count and log line. It never throws and its promise never rejects.
 */
export class RequestPipeline {
  readonly #router: PathRouter;
  readonly #baseUrl: string | undefined;
  readonly #scheme: string;
  readonly #log: RequestLog;
  readonly #onReadDamage: (error: StorageError) => void;
  readonly #onShortage: (error: unknown) => void;
  readonly #dataDirectory: string | undefined;
  readonly #deadlineMs: number;
  readonly #apiKeys: ApiKeys | undefined;
  readonly #allowedHosts: AllowedHosts | undefined;
  readonly #crossOrigin: CrossOrigin;
  readonly #onAnswer: OnAnswer;
  readonly #bodyParsers = new Map<Route, RequestBodyParser>();
  #readingBytes = 0;
  #isDraining = false;
  /** The last Host that was allowed, and what links start with for it: most clients send the same. */
  #lastHost: string | undefined;
  #lastBaseUrl = "";

  constructor(options: RequestPipelineOptions) {
    this.#router = new PathRouter(options.routes);
    for (const route of options.routes) {
      if (route.body !== undefined) this.#bodyParsers.set(route, new RequestBodyParser(route.body));
    }
    this.#baseUrl = options.baseUrl;
    this.#scheme = options.scheme ?? "http";
    this.#apiKeys = options.apiKeys;
    this.#allowedHosts = options.allowedHosts;
    this.#crossOrigin = options.crossOrigin ?? new CrossOrigin([]);
    this.#onAnswer = options.onAnswer ?? (() => {});
    this.#deadlineMs = options.deadlineMs ?? LIMITS.requestDeadlineMs;
    this.#log = new RequestLog(options.log);
    this.#onReadDamage = options.onReadDamage ?? (() => {});
    this.#onShortage = options.onShortage ?? (() => {});
    this.#dataDirectory = options.dataDirectory;
  }

  /** What the request is to be answered with. To be given to `answer`, once, when it is known that it can be sent, or what is sent instead. */
  handle(incoming: IncomingRequest, traceId: string): Reply | Promise<Reply> {
    incoming.startedMs = performance.now();
    try {
      const dispatched = this.#dispatch(incoming, traceId);
      if (dispatched instanceof Promise) return this.#representedLater(dispatched, incoming, traceId);
      const represented = this.#represented(dispatched, incoming);
      return represented instanceof Promise ? this.#caught(represented, incoming, traceId) : represented;
    } catch (error) {
      return this.failure(error, incoming, traceId);
    }
  }

  // Apart from `handle`: what a closure captures is allocated for every request, also for those that are answered at once.
  #representedLater(pending: Promise<Reply>, incoming: IncomingRequest, traceId: string): Promise<Reply> {
    const represented = this.#inTime(pending, incoming, traceId).then((reply) => this.#represented(reply, incoming));
    return this.#caught(represented, incoming, traceId);
  }

  #caught(pending: Promise<Reply>, incoming: IncomingRequest, traceId: string): Promise<Reply> {
    return pending.catch((error: unknown) => this.failure(error, incoming, traceId));
  }

  /** From now on every answer is the last of its connection. */
  drain(): void {
    this.#isDraining = true;
    this.#log.flush();
  }

  #dispatch(incoming: IncomingRequest, traceId: string): Reply | Promise<Reply> {
    const { headers } = incoming;
    const fault = framingFault(incoming, headers);
    if (fault !== undefined) return refusal(fault, traceId);
    const host = headers.get("host") as string;
    if (host !== this.#lastHost) this.#takeHost(host);
    const baseUrl = this.#lastBaseUrl;
    if (incoming.method === "OPTIONS") return this.#optionsReply(incoming);
    const { route, params, takesQuery } = this.#router.find(incoming.method, incoming.path);
    incoming.route = route;
    if (this.#apiKeys !== undefined && route.scope !== "none") {
      this.#apiKeys.check(headers.get("authorization"), route.scope, route.showsKeyFault);
    }
    if (route.method !== "GET") this.#crossOrigin.checkWrite(headers, baseUrl);
    if (route.body !== undefined) {
      if (headers.count("content-length") === 0) return refusal(missingLength(), traceId);
      const wrongType = mediaTypeFault(headers);
      if (wrongType !== undefined) throw wrongType;
    }
    const query = takesQuery ? parseQuery(route.query, incoming.query) : NO_QUERY;
    const request = new PipelineRequest(incoming, params, query, baseUrl, traceId);
    incoming.handled = request;
    return route.body === undefined ? route.handle(request) : this.#withBody(route, incoming, request);
  }

  /** @throws ServiceError misdirected_request */
  #takeHost(host: string): void {
    this.#allowedHosts?.check(host);
    this.#lastHost = host;
    this.#lastBaseUrl = this.#baseUrl ?? `${this.#scheme}://${host}`;
  }

  #optionsReply({ path, headers }: IncomingRequest): Reply {
    const methods = (path === "*" ? ALL_METHODS : this.#router.methods(path)).join(", ");
    const further = this.#crossOrigin.preflightHeaders(headers, methods);
    return { status: 204, headers: [["Allow", methods], ...further], body: null };
  }

  /** What was read, as the client wants it: nothing that it has already, only a part, or compressed. */
  #represented(reply: Reply, { method, headers, startedMs }: IncomingRequest): Reply | Promise<Reply> {
    if (reply.status !== 200 || (method !== "GET" && method !== "HEAD")) return reply;
    reply.variesByEncoding = isCompressible(reply);
    const conditional = conditionalReply(reply, method, headers);
    if (!reply.variesByEncoding || conditional.status !== 200) return conditional;
    if (!acceptsGzip(headers.get("accept-encoding"))) return conditional;
    const compressed = compressedReply(conditional);
    return compressed instanceof Promise ? this.#orPlain(compressed, conditional, startedMs) : compressed;
  }

  /**
   * The compressed form, or the plain one when that takes too long: the threads that compress also read files, and may be busy with slow
   * disks. The plain one is at hand and right, so that the deadline means an answer here, not a refusal.
   */
  #orPlain(compressed: Promise<Reply>, plain: Reply, startedMs: number): Promise<Reply> {
    const leftMs = this.#deadlineMs - (performance.now() - startedMs);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, Math.max(0, Math.min(COMPRESSION_MS, leftMs)), plain).unref();
      compressed.finally(() => clearTimeout(timer)).then(resolve, reject);
    });
  }

  async #withBody(route: Route, incoming: IncomingRequest, request: PipelineRequest): Promise<Reply> {
    const lengthBytes = Number(incoming.headers.get("content-length"));
    if (this.#readingBytes + lengthBytes > READING_LIMIT_BYTES) {
      const busy = new ServiceError("unavailable", "too many request bodies are being read", {
        retry_after_seconds: RETRY_AFTER_SECONDS,
      });
      return refusal(busy, request.traceId);
    }
    this.#readingBytes += lengthBytes;
    let bytes: Uint8Array | undefined;
    try {
      // Until the deadline at most: a server need not tell how a body ends once its request is answered.
      bytes = await Promise.race([incoming.readBody(lengthBytes), whenAborted(request.gone())]);
    } finally {
      this.#readingBytes -= lengthBytes;
    }
    if (bytes === undefined) throw new ServiceError("bad_request", "the request's body did not come to its end");
    request.body = (this.#bodyParsers.get(route) as RequestBodyParser).parse(bytes);
    return route.handle(request);
  }

  /** The reply, or a refusal in its place once the deadline is over; the connection is then of no more use. */
  #inTime(pending: Promise<Reply>, incoming: IncomingRequest, traceId: string): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const deadline = setTimeout(() => {
        incoming.handled?.end();
        pending.then(releaseUnsent, () => {});
        const message = `the request was not answered within ${this.#deadlineMs} ms`;
        if (!incoming.isAborted()) this.#log.trouble(incoming, traceId, { level: "warn", message });
        resolve(refusal(new ServiceError("unavailable", message, { deadline_ms: this.#deadlineMs }), traceId));
      }, this.#deadlineMs).unref();
      pending.finally(() => clearTimeout(deadline)).then(resolve, reject);
    });
  }

  /** The envelope for whatever was thrown; what has no name in the catalogue is logged, and shown as internal_error. */
  failure(error: unknown, incoming: IncomingRequest, traceId: string): Reply {
    if (error instanceof ServiceError && error.data.code !== "internal_error") return errorReply(error.data, traceId);
    const missing = shortageOf(error);
    if (missing !== null) {
      this.#onShortage(error);
      const message = `the service cannot answer this now: ${missing}`;
      return errorReply(
        { code: "unavailable", message, params: { retry_after_seconds: RETRY_AFTER_SECONDS } },
        traceId,
      );
    }
    this.#log.trouble(incoming, traceId, { level: "error", message: "a request failed inside the service", error });
    if (isReadDamage(error)) {
      this.#onReadDamage(error);
      const { code, message, params } = error.data;
      const data: ErrorData = {
        code: "internal_error",
        message: `what is stored cannot be read: ${message}`,
        params: { cause: code, ...params },
      };
      return errorReply(this.#shown(data), traceId);
    }
    return errorReply(
      { code: "internal_error", message: "the service failed; its log has this trace id", params: {} },
      traceId,
    );
  }

  /** Without the folders of the machine. */
  #shown(error: ErrorData): ErrorData {
    const directory = this.#dataDirectory;
    if (directory === undefined) return error;
    const { message, params } = error;
    return {
      ...error,
      message: withRelativePaths(message, directory),
      params: fieldsWithRelativePaths(params, directory),
    };
  }

  /** Told by the server when an answer that has begun cannot be sent to its end. */
  brokenOff(error: unknown, incoming: IncomingRequest, traceId: string, sentBytes: number): void {
    // Retention has removed what it is made of, say: the next request is told so, and nothing is wrong with the service.
    const isFault = !(error instanceof ServiceError) || error.data.code === "internal_error";
    this.#log.trouble(incoming, traceId, {
      level: isFault ? "error" : "info",
      message: "reading a body failed",
      error,
      sentBytes,
    });
    if (isReadDamage(error)) this.#onReadDamage(error);
    this.#onShortage(error);
  }

  /**
   * What is sent for a reply: a refusal in its place where there is no room for it. Every request comes here once, also one whose client is
   * gone, and only what is returned here is counted, logged, and shown to pages of other origins: at debug, an error at info.
   * @param reply of a stream, when its first piece is read: until then it may still become an error
   */
  answer(reply: Reply, incoming: IncomingRequest, traceId: string, held: HeldBodies): Reply {
    let answer = held.admitOrRefuse(reply, traceId);
    if (this.#isDraining && !answer.closeConnection) answer = { ...answer, closeConnection: true };
    const tookMs = performance.now() - incoming.startedMs;
    this.#onAnswer(incoming.method, incoming.route?.path, answer.status, tookMs);
    incoming.furtherHeaders = this.#crossOrigin.linesFor(incoming.headers);
    this.#log.answered(answer.status, incoming, traceId, tookMs);
    return answer;
  }

  /** Told by a server that answers what is no request. */
  answeredByServer(status: number, traceId: string, cause: string | undefined, address: string): void {
    this.#onAnswer("", undefined, status, 0);
    this.#log.answeredByServer(status, traceId, cause, address);
  }

  /** Told by a server that closes a new connection at once. */
  connectionRefused(address: string, open: number): void {
    this.#log.connectionRefused(address, open);
  }

  /** Told by a server that could not accept a connection. */
  acceptFailed(error: unknown): void {
    this.#onShortage(error);
  }

  /** Told by a server that cannot send an answer. */
  sendingFailed(error: unknown, incoming: IncomingRequest, traceId: string): void {
    this.#log.trouble(incoming, traceId, { level: "error", message: "sending a response failed", error });
  }
}

/** Of `OPTIONS *`, which asks for the service as a whole (RFC 9110, section 9.3.7). */
const ALL_METHODS = ["GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS"];

const NO_QUERY: QueryValues<QueryParameters> = Object.freeze({});

/** After such an answer nothing more is read from the connection. */
function refusal(error: ServiceError, traceId: string): Reply {
  return { ...errorReply(error.data, traceId), closeConnection: true };
}

function whenAborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
}

/** A reply that comes too late still has its source open. */
function releaseUnsent({ body }: Reply): void {
  if (isStreamBody(body)) body.release();
}

class PipelineRequest implements HandlerRequest {
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

  isAborted(): boolean {
    return this.#incoming.isAborted();
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

  /** Nobody waits for it any more. */
  end(): void {
    this.#gone?.abort();
  }
}
