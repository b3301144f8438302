import type { HttpRequest, HttpResponse, TemplatedApp, us_listen_socket } from "uWebSockets.js";
import { createRequire } from "node:module";
import { errorReply } from "./error-reply.js";
import { HeldBodies } from "./held-bodies.js";
import type { HttpServer, HttpServerOptions } from "./http-server.js";
import { isStreamBody, type Reply, type StreamBody } from "./reply.js";
import { RequestHeaders } from "./request-headers.js";
import { type IncomingRequest, requestTraceId } from "./request-pipeline.js";

/** The application as it is: the package's types lack listening with options on a host, and close. */
type UwsApp = Pick<TemplatedApp, "any"> & {
  listen(host: string, port: number, options: number, callback: (socket: us_listen_socket | false) => void): UwsApp;
  close(): UwsApp;
};

interface UwsModule {
  App(): UwsApp;
  SSLApp?: unknown;
  LIBUS_LISTEN_EXCLUSIVE_PORT: number;
  us_listen_socket_close(socket: us_listen_socket): void;
  us_socket_local_port(socket: us_listen_socket): number;
}

/**
 * Slices that downloads are read and sent in: large enough that a read costs little beside its bytes, small enough that a thousand slow
 * clients, with one slice in flight and one read ahead, hold half a gigabyte.
 */
const SLICE_BYTES = 256 * 1024;

/** How often a closing server looks whether its last requests have ended. */
const DRAIN_POLL_MS = 10;

/** Status lines of what the service answers (RFC 9110, section 15). */
const STATUS_LINES: Readonly<Record<number, string>> = {
  200: "200 OK",
  201: "201 Created",
  204: "204 No Content",
  206: "206 Partial Content",
  304: "304 Not Modified",
  400: "400 Bad Request",
  401: "401 Unauthorized",
  403: "403 Forbidden",
  404: "404 Not Found",
  405: "405 Method Not Allowed",
  409: "409 Conflict",
  410: "410 Gone",
  411: "411 Length Required",
  413: "413 Content Too Large",
  415: "415 Unsupported Media Type",
  416: "416 Range Not Satisfiable",
  422: "422 Unprocessable Content",
  500: "500 Internal Server Error",
  503: "503 Service Unavailable",
};

export class HttpServerError extends Error {
  override name = "HttpServerError";
}

/**
 * The native module. Where its binary does not load, the package warns on the console and hands out a replacement in JavaScript of
 * another behaviour, which has no SSLApp: that is an error here, never a silent fallback.
 */
function loadUws(): UwsModule {
  const advice =
    `the native uWebSockets.js binary does not load on ${process.platform} ${process.arch} with Node ${process.version}: ` +
    "it needs Node 20 on glibc; the front that does without it (--front node) is not part of this release";
  if (/^(?:true|1)$/i.test(process.env.UWS_USE_FALLBACK ?? "")) {
    throw new HttpServerError(`UWS_USE_FALLBACK is set, but only the native binary is served on: ${advice}`);
  }
  const require = createRequire(import.meta.url);
  const warn = console.warn;
  let uws: UwsModule;
  try {
    console.warn = () => {};
    uws = require("uWebSockets.js") as UwsModule;
  } catch (error) {
    throw new HttpServerError(`${advice} (${(error as Error).message})`);
  } finally {
    console.warn = warn;
  }
  if (typeof uws.SSLApp !== "function") throw new HttpServerError(advice);
  return uws;
}

/** Serves the pipeline on uWebSockets.js. @throws HttpServerError when the binary does not load or the address is taken */
export async function startUwsServer(options: HttpServerOptions): Promise<HttpServer> {
  const uws = loadUws();
  const app = uws.App();
  const exchanges = new Set<Exchange>();
  const held = new HeldBodies(options.heldBodyBytes);
  app.any("/*", (response, request) => {
    serve(response, request, options, exchanges, held);
  });
  const socket = await new Promise<us_listen_socket | false>((resolve) => {
    // Exclusive: without it a second service could share the port and take half of the requests.
    app.listen(options.host, options.port, uws.LIBUS_LISTEN_EXCLUSIVE_PORT, resolve);
  });
  if (socket === false) {
    throw new HttpServerError(
      `cannot listen on ${options.host} port ${options.port}: it is in use, not permitted, or not an address of this machine`,
    );
  }
  let closed: Promise<void> | undefined;
  return {
    port: uws.us_socket_local_port(socket),
    close(graceMs) {
      closed ??= drain(app, exchanges, graceMs, () => uws.us_listen_socket_close(socket));
      return closed;
    },
  };
}

async function drain(app: UwsApp, exchanges: Set<Exchange>, graceMs: number, stopListening: () => void): Promise<void> {
  stopListening();
  const deadlineMs = performance.now() + graceMs;
  while (exchanges.size > 0 && performance.now() < deadlineMs) {
    await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS));
  }
  app.close();
}

/** One request and what becomes of it. The native request is gone after the callback: all of it is copied before. */
class Exchange implements IncomingRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers = new RequestHeaders();
  readonly traceId: string;
  readonly response: HttpResponse;
  #aborted = false;
  /** Wakes who waits for the client. */
  onAborted: (() => void) | undefined;

  constructor(response: HttpResponse, request: HttpRequest) {
    this.response = response;
    this.method = request.getMethod().toUpperCase();
    this.path = request.getUrl();
    this.query = request.getQuery() ?? "";
    // Every line: getHeader shows the first of several only, and cannot tell an empty one from none.
    request.forEach((name, value) => {
      this.headers.add(name, value);
    });
    this.traceId = requestTraceId(this.headers);
  }

  isAborted(): boolean {
    return this.#aborted;
  }

  readBody(lengthBytes: number): Promise<Uint8Array | undefined> {
    return new Promise((resolve) => {
      // In one piece from the start: what drips in byte by byte must not cost an object for each byte.
      const body = Buffer.allocUnsafeSlow(lengthBytes);
      let position = 0;
      this.onAborted = () => resolve(undefined);
      this.response.onData((chunk, isLast) => {
        // The memory of a chunk is the library's.
        body.set(new Uint8Array(chunk), position);
        position += chunk.byteLength;
        if (isLast) resolve(body);
      });
    });
  }

  /** Must be called in the request's own callback when it returns without the whole answer given. */
  outliveCallback(exchanges: Set<Exchange>): void {
    exchanges.add(this);
    this.response.onAborted(() => {
      this.#aborted = true;
      exchanges.delete(this);
      this.onAborted?.();
    });
  }
}

function serve(
  response: HttpResponse,
  native: HttpRequest,
  options: HttpServerOptions,
  exchanges: Set<Exchange>,
  held: HeldBodies,
): void {
  // A throw out of this callback would end the process.
  try {
    const exchange = new Exchange(response, native);
    let reply = options.pipeline.handle(exchange, exchange.traceId);
    if (!(reply instanceof Promise)) reply = admitted(reply, exchange, held);
    if (
      !(reply instanceof Promise) &&
      reply.body instanceof Uint8Array &&
      exchange.method !== "HEAD" &&
      !reply.closeConnection
    ) {
      sendBytes(exchange, reply, reply.body, exchanges, held);
      return;
    }
    exchange.outliveCallback(exchanges);
    void sendLater(exchange, reply, options, exchanges, held);
  } catch (error) {
    options.log.error({ err: error }, "a request could not be served");
    closeQuietly(response);
  }
}

/** The reply, or a refusal in its place while the bodies that clients do not read leave no room for another one. */
function admitted(reply: Reply, { traceId }: Exchange, held: HeldBodies): Reply {
  if (!(reply.body instanceof Uint8Array) || held.admits(reply.body)) return reply;
  const message = "too many large answers wait for clients that do not read them";
  return errorReply({ code: "unavailable", message, params: { held_bytes: held.bytes } }, traceId);
}

function closeQuietly(response: HttpResponse): void {
  try {
    response.close();
  } catch {
    // It was answered or closed before.
  }
}

function writeHead(response: HttpResponse, reply: Reply, traceId: string): void {
  if (reply.status !== 200) response.writeStatus(STATUS_LINES[reply.status] ?? String(reply.status));
  response.writeHeader("X-Trace-ID", traceId);
  if (reply.contentType !== undefined) response.writeHeader("Content-Type", reply.contentType);
  if (reply.headers !== undefined) for (const [name, value] of reply.headers) response.writeHeader(name, value);
}

/**
 * Answers at once, from within the request's callback. By tryEnd, which buffers nothing: a client that sends requests without reading
 * answers would otherwise make the library hold any number of them. What the client does not take now waits for it, and a request
 * that comes meanwhile on the same connection makes the library close it.
 */
function sendBytes(
  exchange: Exchange,
  reply: Reply,
  bytes: Uint8Array,
  exchanges: Set<Exchange>,
  held: HeldBodies,
): void {
  const { response } = exchange;
  writeHead(response, reply, exchange.traceId);
  const [, finished] = response.tryEnd(bytes, bytes.byteLength);
  if (finished) return;
  held.hold(bytes);
  exchange.onAborted = () => held.release(bytes);
  exchange.outliveCallback(exchanges);
  let waits = true;
  response.onWritable((offset) => {
    if (!waits) return true;
    const [accepted, ended] = response.tryEnd(bytes.subarray(offset), bytes.byteLength);
    if (ended) {
      waits = false;
      exchange.onAborted = undefined;
      held.release(bytes);
      exchanges.delete(exchange);
    }
    return accepted;
  });
}

async function sendLater(
  exchange: Exchange,
  pending: Reply | Promise<Reply>,
  options: HttpServerOptions,
  exchanges: Set<Exchange>,
  held: HeldBodies,
): Promise<void> {
  const { response } = exchange;
  let waitingFor: Uint8Array | undefined;
  try {
    const reply = admitted(await pending, exchange, held);
    if (isStreamBody(reply.body)) {
      await sendStream(exchange, reply, reply.body, options);
      return;
    }
    const body = reply.body;
    if (body === null || exchange.method === "HEAD" || reply.closeConnection) {
      // A turn of the event loop later: a request that stood behind this one in the same read finds it unanswered, and the library
      // closes the connection instead of serving it. So nothing is read behind a request that is refused for its framing, and
      // answers that bypass tryEnd do not pile up.
      await new Promise((resolve) => setImmediate(resolve));
      if (!exchange.isAborted()) response.cork(() => sendWhole(exchange, reply, body));
      return;
    }
    if (exchange.isAborted()) return;
    held.hold(body);
    waitingFor = body;
    await new Promise<void>((resolve) => {
      exchange.onAborted = resolve;
      response.cork(() => {
        writeHead(response, reply, exchange.traceId);
        writeSlice(response, body, 0, body.byteLength, resolve);
      });
    });
  } catch (error) {
    options.log.error({ trace_id: exchange.traceId, path: exchange.path, err: error }, "sending a response failed");
    if (!exchange.isAborted()) closeQuietly(response);
  } finally {
    if (waitingFor !== undefined) held.release(waitingFor);
    exchanges.delete(exchange);
  }
}

/** Ends a response whose body is empty, left out (HEAD), or the last thing on its connection; the response is corked. */
function sendWhole(exchange: Exchange, reply: Reply, body: Uint8Array | null): void {
  const { response } = exchange;
  writeHead(response, reply, exchange.traceId);
  if (exchange.method === "HEAD" && body !== null) endHead(response, body.byteLength, reply.closeConnection === true);
  else if (body === null) response.endWithoutBody();
  else response.end(body, reply.closeConnection);
}

/**
 * Ends the answer to a HEAD request. endWithoutBody(length) of this release leaves the response pending, and the library then closes the
 * connection at its next request; so this is the one place that writes Content-Length by hand.
 */
function endHead(response: HttpResponse, totalBytes: number, closeConnection: boolean): void {
  if (closeConnection) {
    response.endWithoutBody(totalBytes, true);
  } else {
    response.writeHeader("Content-Length", String(totalBytes));
    response.endWithoutBody();
  }
}

/**
 * Sends a body of known length slice by slice: one in flight, the next one read meanwhile. Memory per client is two slices, however
 * large the body and however slow the client; reading stops when it goes.
 */
async function sendStream(
  exchange: Exchange,
  reply: Reply,
  body: StreamBody,
  { pipeline, log }: HttpServerOptions,
): Promise<void> {
  const { response, traceId } = exchange;
  const { totalBytes } = body;
  let position = 0;
  let headSent = false;
  let next: Promise<Uint8Array> | undefined;
  try {
    if (exchange.isAborted()) return;
    if (exchange.method === "HEAD" || totalBytes === 0) {
      response.cork(() => {
        writeHead(response, reply, traceId);
        if (exchange.method === "HEAD") endHead(response, totalBytes, false);
        else response.end();
      });
      return;
    }
    next = readSlice(body, 0);
    while (next !== undefined) {
      const slice: Uint8Array = await next;
      const end = position + slice.byteLength;
      next = undefined;
      if (exchange.isAborted()) return;
      if (end < totalBytes) {
        next = readSlice(body, end);
        // It is awaited only after this slice is out: until then a failure must not count as unhandled.
        next.catch(() => {});
      }
      await new Promise<void>((resolve) => {
        exchange.onAborted = resolve;
        response.cork(() => {
          if (!headSent) writeHead(response, reply, traceId);
          headSent = true;
          writeSlice(response, slice, position, totalBytes, resolve);
        });
      });
      if (exchange.isAborted()) return;
      position = end;
    }
  } catch (error) {
    if (exchange.isAborted()) return;
    if (headSent) {
      log.error({ trace_id: traceId, path: exchange.path, position, err: error }, "reading a body failed");
      // The client has been promised more bytes: only a broken connection tells it that they will not come.
      response.close();
    } else {
      const failure = pipeline.failure(error, exchange, traceId);
      response.cork(() => sendWhole(exchange, failure, failure.body as Uint8Array));
    }
  } finally {
    // A read ahead still uses what release() gives back.
    await next?.catch(() => {});
    body.release();
  }
}

async function readSlice(body: StreamBody, position: number): Promise<Uint8Array> {
  const wanted = Math.min(SLICE_BYTES, body.totalBytes - position);
  const slice = await body.read(position, wanted);
  if (slice.byteLength === 0 || slice.byteLength > wanted) {
    throw new Error(`a read at ${position} gave ${slice.byteLength} bytes of ${wanted}`);
  }
  return slice;
}

/** Hands one slice over, in as many parts as the client's receive window asks for; the response is corked. */
function writeSlice(
  response: HttpResponse,
  slice: Uint8Array,
  start: number,
  totalBytes: number,
  done: () => void,
): void {
  const [accepted, finished] = response.tryEnd(slice, totalBytes);
  if (accepted || finished) {
    done();
    return;
  }
  let waits = true;
  response.onWritable((offset) => {
    // It stays registered: the socket can become writable once more while the next slice is still being read.
    if (!waits) return true;
    const [restAccepted, restFinished] = response.tryEnd(slice.subarray(offset - start), totalBytes);
    if (restAccepted || restFinished) {
      waits = false;
      done();
    }
    return restAccepted;
  });
}
