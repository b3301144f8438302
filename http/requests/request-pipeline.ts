import { performance } from "node:perf_hooks";
import { LIMITS } from "../../core/limits.js";
import { type ErrorData, ServiceError } from "../../core/service-errors.js";
import { shortageOf } from "../../storage/disk/file-system-error.js";
import { isReadDamage } from "../../storage/log/read-damage.js";
import { fieldsWithRelativePaths, withRelativePaths } from "../../storage/relative-paths.js";
import type { StorageError } from "../../storage/storage-error.js";
import { notUpgradable, protocolAuthorization } from "../live/socket-handshake.js";
import { RequestLog } from "../log/request-log.js";
import type { ServiceLog } from "../log/service-log.js";
import { accepts } from "../replies/accepted-coding.js";
import { compressedReply, isCompressible } from "../replies/compressed-reply.js";
import { conditionalReply } from "../replies/conditional-reply.js";
import { errorReply } from "../replies/error-reply.js";
import type { HeldBodies } from "../replies/held-bodies.js";
import { isStreamBody, type Reply } from "../replies/reply.js";
import type { AllowedHosts } from "./allowed-hosts.js";
import type { ApiKeys } from "./api-keys.js";
import { BodiesBeingRead } from "./bodies-being-read.js";
import { CrossOrigin } from "./cross-origin.js";
import { type IncomingRequest, PipelineRequest } from "./incoming-request.js";
import { PathRouter } from "./path-router.js";
import { parseQuery, type QueryParameters, type QueryValues } from "./query-parameters.js";
import { mediaTypeFault, RequestBodyParser } from "./request-body.js";
import { framingFault, missingLength } from "./request-framing.js";
import type { RequestHeaders } from "./request-headers.js";
import type { Route } from "./route.js";

/** @param path of the route as declared; undefined if no route matched */
export type OnAnswer = (method: string, path: string | undefined, status: number, durationMs: number) => void;

export interface RequestPipelineOptions {
  routes: readonly Route[];
  /** What absolute links start with; undefined: the request's Host. */
  baseUrl: string | undefined;
  /** Scheme of links that start with the request's Host. */
  scheme?: "http" | "https";
  log: ServiceLog;
  /** Called when a request fails because stored bytes are damaged or missing, even if its answer has begun. */
  onReadDamage?: (error: StorageError) => void;
  /** Called when an answer fails because files or memory have run out. */
  onShortage?: (error: unknown) => void;
  /** Errors show paths relative to this folder; undefined: absolute paths. */
  dataDirectory?: string;
  /** Undefined: no key is needed. */
  apiKeys?: ApiKeys | undefined;
  /** Undefined: any Host. */
  allowedHosts?: AllowedHosts | undefined;
  crossOrigin?: CrossOrigin;
  /** Called once for every request, when its answer is known. */
  onAnswer?: OnAnswer;
  /** Time limit from the start of a request to the start of its answer. */
  deadlineMs?: number;
}

const DEFAULTS = {
  scheme: "http" as "http" | "https",
  onReadDamage: (_error: StorageError) => {},
  onShortage: (_error: unknown) => {},
  crossOrigin: new CrossOrigin([]),
  onAnswer: (() => {}) as OnAnswer,
  deadlineMs: LIMITS.requestDeadlineMs as number,
};

/** If compression takes longer, the plain answer is sent: the client would gain nothing by waiting. */
const COMPRESSION_MS = 2_000;

/** When a refused client may ask again. */
const RETRY_AFTER_SECONDS = 1;

/**
 * The way of every request, on every server: framing check, route, parameters, handler, errors as envelopes; and when the answer is known,
 * metrics and log line. It never throws, and its promise never rejects.
 */
export class RequestPipeline {
  readonly #options: RequestPipelineOptions & typeof DEFAULTS;
  readonly #router: PathRouter;
  readonly #log: RequestLog;
  /** Paths of the routes that open a WebSocket, as declared. */
  readonly socketPaths: readonly string[];
  readonly #bodyParsers = new Map<Route, RequestBodyParser>();
  readonly #reading = new BodiesBeingRead();
  #isDraining = false;
  /** The last allowed Host and its base URL: most requests have the same Host. */
  #lastHost: string | undefined;
  #lastBaseUrl = "";

  constructor(options: RequestPipelineOptions) {
    this.#options = { ...DEFAULTS, ...options };
    this.#router = new PathRouter(options.routes);
    for (const route of options.routes) {
      if (route.body !== undefined) this.#bodyParsers.set(route, new RequestBodyParser(route.body));
    }
    this.socketPaths = options.routes.filter(({ live }) => live === "socket").map(({ path }) => path);
    this.#log = new RequestLog(options.log);
  }

  /** The reply to a request. The server passes it, or the failure it sends instead, to `answer` exactly once before sending. */
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

  // Not inside `handle`: the closure's context would be allocated for every request, even one that is answered at once.
  #representedLater(pending: Promise<Reply>, incoming: IncomingRequest, traceId: string): Promise<Reply> {
    const represented = this.#inTime(pending, incoming, traceId).then((reply) => this.#represented(reply, incoming));
    return this.#caught(represented, incoming, traceId);
  }

  #caught(pending: Promise<Reply>, incoming: IncomingRequest, traceId: string): Promise<Reply> {
    return pending.catch((error: unknown) => this.failure(error, incoming, traceId));
  }

  /** From now on every answer closes its connection. */
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
    if (this.#options.apiKeys !== undefined && route.scope !== "none") {
      this.#options.apiKeys.check(authorizationOf(headers, route), route.scope, route.showsKeyFault);
    }
    if (route.live === "socket") {
      this.#options.crossOrigin.checkSocket(headers, baseUrl);
      if (incoming.method !== "GET") throw notUpgradable(incoming.method);
    } else if (route.live === "stream") this.#options.crossOrigin.checkStream(headers, baseUrl);
    if (route.method !== "GET") this.#options.crossOrigin.checkWrite(headers, baseUrl);
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
    this.#options.allowedHosts?.check(host);
    this.#lastHost = host;
    this.#lastBaseUrl = this.#options.baseUrl ?? `${this.#options.scheme}://${host}`;
  }

  #optionsReply({ path, headers }: IncomingRequest): Reply {
    const methods = (path === "*" ? ALL_METHODS : this.#router.methods(path)).join(", ");
    const further = this.#options.crossOrigin.preflightHeaders(headers, methods);
    return { status: 204, headers: [["Allow", methods], ...further], body: null };
  }

  /** The reply as the client asked for it: 304 for what it has already, one range, or compressed. */
  #represented(reply: Reply, { method, headers, startedMs }: IncomingRequest): Reply | Promise<Reply> {
    if (reply.status !== 200 || (method !== "GET" && method !== "HEAD")) return reply;
    const isChosen = reply.isInChosenCoding === true;
    reply.variesByEncoding = isChosen || isCompressible(reply);
    const conditional = conditionalReply(reply, method, headers);
    if (isChosen || !reply.variesByEncoding || conditional.status !== 200) return conditional;
    if (!accepts(headers.get("accept-encoding"), "gzip")) return conditional;
    const compressed = compressedReply(conditional);
    return compressed instanceof Promise ? this.#orPlain(compressed, conditional, startedMs) : compressed;
  }

  /**
   * The compressed reply, or the plain one if compression takes too long: its threads also read files, and may be waiting for slow disks.
   */
  #orPlain(compressed: Promise<Reply>, plain: Reply, startedMs: number): Promise<Reply> {
    const leftMs = this.#options.deadlineMs - (performance.now() - startedMs);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, Math.max(0, Math.min(COMPRESSION_MS, leftMs)), plain).unref();
      compressed.finally(() => clearTimeout(timer)).then(resolve, reject);
    });
  }

  async #withBody(route: Route, incoming: IncomingRequest, request: PipelineRequest): Promise<Reply> {
    const lengthBytes = Number(incoming.headers.get("content-length"));
    const place = this.#reading.enter(lengthBytes, () => request.end());
    let bytes: Uint8Array | undefined;
    try {
      // Not after the deadline: once a request is answered, a server may never report the end of its body.
      bytes = await Promise.race([incoming.readBody(lengthBytes), whenAborted(request.gone())]);
    } finally {
      this.#reading.leave(place);
    }
    if (bytes === undefined) {
      if (!place.isOusted) throw new ServiceError("bad_request", "the request's body ended before its Content-Length");
      const message = "the service is reading too many request bodies at the moment, and this one was slow";
      const busy = new ServiceError("unavailable", message, { retry_after_seconds: RETRY_AFTER_SECONDS });
      return refusal(busy, request.traceId);
    }
    request.body = (this.#bodyParsers.get(route) as RequestBodyParser).parse(bytes);
    return route.handle(request);
  }

  /** The reply, or an error once the deadline has passed; the connection is then closed. */
  #inTime(pending: Promise<Reply>, incoming: IncomingRequest, traceId: string): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const deadline = setTimeout(() => {
        incoming.handled?.end();
        pending.then(releaseUnsent, () => {});
        const message = `the service could not answer the request within ${this.#options.deadlineMs} ms`;
        if (!incoming.isAborted()) this.#log.trouble(incoming, traceId, { level: "warn", message });
        const params = { deadline_ms: this.#options.deadlineMs, retry_after_seconds: RETRY_AFTER_SECONDS };
        resolve(refusal(new ServiceError("unavailable", message, params), traceId));
      }, this.#options.deadlineMs).unref();
      pending.finally(() => clearTimeout(deadline)).then(resolve, reject);
    });
  }

  /** The error reply for anything that was thrown. An error that is not in the catalogue is logged and answered as internal_error. */
  failure(error: unknown, incoming: IncomingRequest, traceId: string): Reply {
    if (error instanceof ServiceError && error.data.code !== "internal_error") return errorReply(error.data, traceId);
    const missing = shortageOf(error);
    if (missing !== null) {
      this.#options.onShortage(error);
      const message = `the service cannot answer this now: ${missing}`;
      return errorReply(
        { code: "unavailable", message, params: { retry_after_seconds: RETRY_AFTER_SECONDS } },
        traceId,
      );
    }
    this.#log.trouble(incoming, traceId, { level: "error", message: "a request failed inside the service", error });
    if (isReadDamage(error)) {
      this.#options.onReadDamage(error);
      const { code, message, params } = error.data;
      const data: ErrorData = {
        code: "internal_error",
        message: `the stored data cannot be read: ${message}`,
        params: { cause: code, ...params },
        retryable: false,
      };
      return errorReply(this.#shown(data), traceId);
    }
    return errorReply(
      {
        code: "internal_error",
        message: "the service failed to answer; its log has the details under this trace id",
        params: {},
      },
      traceId,
    );
  }

  /** The error with paths relative to the data directory: the folders of the machine are not for clients. */
  #shown(error: ErrorData): ErrorData {
    const directory = this.#options.dataDirectory;
    if (directory === undefined) return error;
    const { message, params } = error;
    return {
      ...error,
      message: withRelativePaths(message, directory),
      params: fieldsWithRelativePaths(params, directory),
    };
  }

  /** Called by a server that does not make a WebSocket of the connection. */
  withoutSocket(reply: Reply, incoming: IncomingRequest, traceId: string): Reply {
    if (reply.socket === undefined) return reply;
    reply.socket.release();
    return errorReply(notUpgradable(incoming.method).data, traceId);
  }

  /** Called by the server when an answer that has begun cannot be completed. */
  brokenOff(error: unknown, incoming: IncomingRequest, traceId: string, sentBytes: number): void {
    // A ServiceError is no fault of the service: retention may have removed the capture while it was read.
    const isFault = !(error instanceof ServiceError) || error.data.code === "internal_error";
    this.#log.trouble(incoming, traceId, {
      level: isFault ? "error" : "info",
      message: "reading a body failed",
      error,
      sentBytes,
    });
    if (isReadDamage(error)) this.#options.onReadDamage(error);
    this.#options.onShortage(error);
  }

  /**
   * The answer to send: the reply, or an error if unread answers leave no memory for it. Called exactly once for every request, even if its
   * client is gone. This is where requests are counted and logged.
   * @param reply for a stream, call it only after the first chunk is read: until then the reply may still become an error
   */
  answer(reply: Reply, incoming: IncomingRequest, traceId: string, held: HeldBodies): Reply {
    let answer = held.admitOrRefuse(reply, traceId);
    if (this.#isDraining && !answer.closeConnection) answer = { ...answer, closeConnection: true };
    const tookMs = performance.now() - incoming.startedMs;
    this.#options.onAnswer(incoming.method, incoming.route?.path, answer.status, tookMs);
    incoming.furtherHeaders = this.#options.crossOrigin.linesFor(incoming.headers);
    this.#log.answered(answer.status, incoming, traceId, tookMs);
    return answer;
  }

  /** Called by a server that has answered bytes that are no HTTP request. */
  answeredByServer(status: number, traceId: string, cause: string | undefined, address: string): void {
    this.#options.onAnswer("", undefined, status, 0);
    this.#log.answeredByServer(status, traceId, cause, address);
  }

  /** Called by a server that closes a new connection because there are too many. */
  connectionRefused(address: string, open: number): void {
    this.#log.connectionRefused(address, open);
  }

  /** Called by a server that could not accept a connection. */
  acceptFailed(error: unknown): void {
    this.#options.onShortage(error);
  }

  /** Called by a server that cannot send an answer. */
  sendingFailed(error: unknown, incoming: IncomingRequest, traceId: string): void {
    this.#log.trouble(incoming, traceId, { level: "error", message: "sending a response failed", error });
  }
}

/** The answer to `OPTIONS *`, which asks about the service as a whole (RFC 9110, section 9.3.7). */
const ALL_METHODS = ["GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS"];

/** A browser can set no header of a WebSocket's request, so its key may come among the subprotocols. */
function authorizationOf(headers: RequestHeaders, { live }: Route): string | undefined {
  const authorization = headers.get("authorization");
  if (authorization !== undefined || live !== "socket") return authorization;
  return protocolAuthorization(headers.get("sec-websocket-protocol"));
}

const NO_QUERY: QueryValues<QueryParameters> = Object.freeze({});

/** An error after which nothing more is read from the connection. */
function refusal(error: ServiceError, traceId: string): Reply {
  return { ...errorReply(error.data, traceId), closeConnection: true };
}

function whenAborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
}

/** Closes the source of a reply that came after the deadline. */
function releaseUnsent({ body }: Reply): void {
  if (isStreamBody(body)) body.release();
}
