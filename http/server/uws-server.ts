import { HeldBodies } from "../replies/held-bodies.js";
import { type HeaderLines, isStreamBody, type Reply, type StreamBody } from "../replies/reply.js";
import { statusLine } from "../replies/status-lines.js";
import { readSlice, SliceMemory } from "../replies/stream-slices.js";
import { RequestHeaders } from "../requests/request-headers.js";
import { type IncomingRequest, requestTraceId } from "../requests/request-pipeline.js";
import type { Route } from "../requests/route.js";
import { TRACE_ID_DIGITS } from "../requests/trace-id.js";
import {
  cannotListen,
  type HttpServer,
  type HttpServerOptions,
  KEEP_ALIVE_LINES,
  TLS_CIPHERS,
  type TlsFiles,
} from "./server-options.js";
import { StalledClients, type WaitingClient } from "./stalled-clients.js";
import type { UwsApp, UwsBuild, UwsRequest, UwsResponse } from "./uws-binary.js";
import { UwsListening } from "./uws-listening.js";

/** An answer of so many bytes finds room in any socket. */
const LAST_BYTES = 16 * 1024;

/** How often a closing server looks whether its last requests have ended. */
const DRAIN_POLL_MS = 10;

/** Serves the pipeline on uWebSockets.js. @throws HttpServerError when the address is taken */
export async function startUwsServer(options: HttpServerOptions, { uws, version }: UwsBuild): Promise<HttpServer> {
  const { tls } = options;
  const app = tls === undefined ? uws.App() : uws.SSLApp(sslOptions(tls));
  const sender = new Sender(options);
  // Of most requests the method need not be asked for, which costs as much as the path.
  app.get("/*", (response, request) => serve(response, request, "GET", options, sender));
  app.any("/*", (response, request) => serve(response, request, request.getCaseSensitiveMethod(), options, sender));
  const listening = await UwsListening.start(app, uws, options);
  if (listening === undefined) {
    app.close();
    throw cannotListen(options, "it is in use, not permitted, or not an address of this machine");
  }
  let closed: Promise<void> | undefined;
  return {
    port: listening.port,
    label: `uWebSockets.js ${version}`,
    figures: () => ({ openRequests: sender.exchanges.size, heldBytes: sender.held.bytes }),
    close(graceMs) {
      closed ??= drain(app, sender, graceMs, () => listening.close());
      return closed;
    },
  };
}

/** The library itself takes TLS 1.2 and newer only. */
function sslOptions({ certPath, keyPath }: TlsFiles) {
  return { cert_file_name: certPath, key_file_name: keyPath, ssl_ciphers: TLS_CIPHERS };
}

async function drain(app: UwsApp, sender: Sender, graceMs: number, stopListening: () => void): Promise<void> {
  stopListening();
  // Idle connections cannot be told from others here, and end with the last request: whoever goes on asking must not put that off.
  sender.drain();
  const deadlineMs = performance.now() + graceMs;
  while (sender.exchanges.size > 0 && performance.now() < deadlineMs) {
    await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS));
  }
  app.close();
  sender.close();
}

/** Of the request that is being read: a closure for each would cost more than copying its lines. */
let headersBeingRead: RequestHeaders;
const addHeader = (name: string, value: string): void => headersBeingRead.add(name, value);

// Among the options of a Connection header (RFC 9112, section 9.6).
const CLOSE = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i;

/** One request and what becomes of it. The native request is gone after the callback: all of it is copied before. */
class Exchange implements IncomingRequest {
  readonly method: string;
  readonly path: string;
  readonly headers = new RequestHeaders();
  readonly traceId: string;
  /** The client has said that it sends no further request on this connection: none that comes all the same may be run. */
  readonly isLast: boolean;
  readonly response: UwsResponse;
  readonly #native: UwsRequest;
  #query: string | undefined;
  #aborted = false;
  #abortListener: (() => void) | undefined;
  /** Wakes who waits for the client. */
  onAborted: (() => void) | undefined;
  /** Gives the client more when there is room; undefined while nothing waits for it. */
  #offer: (() => boolean) | undefined;
  #hearsOfRoom = false;
  /** Of who reads on the client's behalf: aborted when it is gone. */
  gone: AbortController | undefined;
  startedMs = 0;
  route: Route | undefined;
  handled: { end(): void } | undefined;
  furtherHeaders: HeaderLines | undefined;

  constructor(response: UwsResponse, request: UwsRequest, method: string) {
    this.response = response;
    this.#native = request;
    this.method = method;
    this.path = request.getUrl();
    // Every line: getHeader shows the first of several only, and cannot tell an empty one from none.
    headersBeingRead = this.headers;
    request.forEach(addHeader);
    this.traceId = requestTraceId(this.headers);
    const connection = this.headers.get("connection");
    this.isLast = connection !== undefined && CLOSE.test(connection);
  }

  /** Asked for when it is first wanted: of a route without parameters it never is. */
  get query(): string {
    this.#query ??= this.#native.getQuery() ?? "";
    return this.#query;
  }

  isAborted(): boolean {
    return this.#aborted;
  }

  remoteAddress(): string {
    return this.#aborted ? "" : Buffer.from(this.response.getRemoteAddressAsText()).toString("latin1");
  }

  whenAborted(listener: () => void): void {
    this.#abortListener = listener;
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

  /**
   * From now on called when there is room. One listener for the whole answer: while one is being called, the library takes it for the one that
   * stays, and drops another that is registered meanwhile.
   */
  whenWritable(offer: (() => boolean) | undefined): void {
    this.#offer = offer;
    if (this.#hearsOfRoom || offer === undefined) return;
    this.#hearsOfRoom = true;
    // It stays registered: the socket can become writable once more while the next slice is still being read.
    this.response.onWritable(() => this.#offer === undefined || this.#offer());
  }

  /** Must be called in the request's own callback when it returns without the whole answer given. */
  outliveCallback(exchanges: Set<Exchange>): void {
    exchanges.add(this);
    void this.query;
    this.response.onAborted(() => {
      this.#aborted = true;
      exchanges.delete(this);
      this.onAborted?.();
      this.#abortListener?.();
      this.gone?.abort();
    });
  }
}

function serve(
  response: UwsResponse,
  native: UwsRequest,
  method: string,
  options: HttpServerOptions,
  sender: Sender,
): void {
  // A throw out of this callback would end the process.
  try {
    const exchange = new Exchange(response, native, method);
    const reply = options.pipeline.handle(exchange, exchange.traceId);
    if (
      !(reply instanceof Promise) &&
      reply.body instanceof Uint8Array &&
      exchange.method !== "HEAD" &&
      !reply.closeConnection &&
      !sender.isDraining &&
      !exchange.isLast
    ) {
      const answer = sender.answer(exchange, reply);
      sender.sendNow(exchange, answer, answer.body as Uint8Array);
      return;
    }
    exchange.outliveCallback(sender.exchanges);
    void sender.sendLater(exchange, reply);
  } catch (error) {
    options.log.error({ err: error }, "a request could not be served");
    closeQuietly(response);
  }
}

/**
 * Until the library has gone through what it read: a request that stood behind another one in the same read finds that unanswered, and the
 * library closes the connection instead of serving it.
 */
function turnOfEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function closeQuietly(response: UwsResponse): void {
  try {
    response.close();
  } catch {
    // It was answered or closed before.
  }
}

function writeHead({ response, traceId, furtherHeaders, isLast }: Exchange, reply: Reply): void {
  if (reply.status !== 200) response.writeStatus(statusLine(reply.status));
  // In one call: each costs as much as the rest of a hot request's head. The library writes name, colon, value and line end as they are,
  // and none of these values can hold a line end: hex digits, a route's own type, base64 in quotes.
  const value = isLast || reply.closeConnection ? traceId + linesOf(reply) : linesWithKeepAlive(reply, traceId);
  response.writeHeader("X-Trace-ID", value);
  // A name or a link may come in these: the library is given each by itself.
  if (reply.headers !== undefined) for (const [name, value] of reply.headers) response.writeHeader(name, value);
  if (furtherHeaders !== undefined) for (const [name, value] of furtherHeaders) response.writeHeader(name, value);
}

/** The lines behind the first, each with a line end before it. */
function linesOf(reply: Reply): string {
  let lines = "";
  if (reply.contentType !== undefined) lines += `\r\nContent-Type: ${reply.contentType}`;
  if (reply.etag) lines += `\r\nETag: ${reply.etag}`;
  if (reply.variesByEncoding) lines += "\r\nVary: Accept-Encoding";
  return lines;
}

const KEEP_ALIVE = KEEP_ALIVE_LINES.map(([name, value]) => `\r\n${name}: ${value}`).join("");

/** The trace id and the lines behind it, of an answer that others may follow. */
function linesWithKeepAlive(reply: Reply, traceId: string): string | Uint8Array {
  return reply.isKept ? keptLines(reply, traceId) : traceId + linesOf(reply) + KEEP_ALIVE;
}

/**
 * The same, as bytes that stay with the reply and have each answer's id written into them: a text put together
 * for every answer would be copied three times on its way out. To be given to the library at once, which copies them.
 */
function keptLines(reply: Reply, traceId: string): Uint8Array {
  reply.lines ??= new Uint8Array(Buffer.from(traceId + linesOf(reply) + KEEP_ALIVE, "latin1"));
  const lines = reply.lines;
  for (let i = 0; i < TRACE_ID_DIGITS; i++) lines[i] = traceId.charCodeAt(i);
  return lines;
}

/** Gives replies to clients, as fast as these take them. */
class Sender {
  /** Requests whose answers are not given yet. */
  readonly exchanges = new Set<Exchange>();
  readonly held: HeldBodies;
  readonly #options: HttpServerOptions;
  readonly #stalled: StalledClients;
  isDraining = false;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    this.held = new HeldBodies(options.heldBodyBytes);
    this.#stalled = new StalledClients(options.stallClock);
  }

  /** From now on every answer asks its client to leave. */
  drain(): void {
    this.isDraining = true;
    this.#options.pipeline.drain();
  }

  /** Every connection is gone. */
  close(): void {
    this.#stalled.close();
  }

  /** What is sent for the reply; once for every request. */
  answer(exchange: Exchange, reply: Reply): Reply {
    return this.#options.pipeline.answer(reply, exchange, exchange.traceId, this.held);
  }

  /**
   * Answers from within the request's callback. By tryEnd, which buffers nothing: a client that sends requests without reading
   * answers would otherwise make the library hold any number of them. What the client does not take now waits for it, and a request
   * that comes meanwhile on the same connection makes the library close it.
   */
  sendNow(exchange: Exchange, reply: Reply, bytes: Uint8Array): void {
    const { response } = exchange;
    writeHead(exchange, reply);
    if (response.tryEnd(bytes, bytes.byteLength)[1]) return;
    this.held.hold(bytes);
    exchange.outliveCallback(this.exchanges);
    this.#offerRest(exchange, bytes, 0, bytes.byteLength, () => {
      this.held.release(bytes);
      this.exchanges.delete(exchange);
    });
  }

  async sendLater(exchange: Exchange, pending: Reply | Promise<Reply>): Promise<void> {
    const { response } = exchange;
    let waitingFor: Uint8Array | undefined;
    try {
      const reply = await pending;
      if (isStreamBody(reply.body)) {
        await this.#sendStream(exchange, reply, reply.body);
        return;
      }
      const answer = this.answer(exchange, reply);
      const body = answer.body as Uint8Array | null;
      if (body === null || exchange.method === "HEAD" || isLastAndSmall(answer.closeConnection, body)) {
        // So nothing is read behind a request that is refused for its framing, and answers that bypass tryEnd do not pile up.
        await turnOfEventLoop();
        if (!exchange.isAborted()) response.cork(() => sendWhole(exchange, answer, body));
        return;
      }
      if (exchange.isLast || answer.closeConnection) await turnOfEventLoop();
      if (exchange.isAborted()) return;
      this.held.hold(body);
      waitingFor = body;
      await this.#give(exchange, answer, body, 0, body.byteLength);
    } catch (error) {
      this.#options.pipeline.sendingFailed(error, exchange, exchange.traceId);
      if (!exchange.isAborted()) closeQuietly(response);
    } finally {
      if (waitingFor !== undefined) this.held.release(waitingFor);
      this.exchanges.delete(exchange);
    }
  }

  /**
   * Sends a body of known length slice by slice: one in flight, the next one read meanwhile. Memory per client is two slices, however
   * large the body and however slow the client; reading stops when it goes.
   */
  async #sendStream(exchange: Exchange, reply: Reply, body: StreamBody): Promise<void> {
    const { response, traceId } = exchange;
    const { totalBytes } = body;
    const { pipeline } = this.#options;
    let position = 0;
    let next: Promise<Uint8Array> | undefined;
    let answer: Reply | undefined;
    const memory = new SliceMemory();
    try {
      if (exchange.isAborted()) return;
      if (exchange.method === "HEAD" || totalBytes === 0) {
        const head = this.answer(exchange, reply);
        answer = head;
        response.cork(() => {
          writeHead(exchange, head);
          if (exchange.method === "HEAD") endHead(response, totalBytes, head.closeConnection === true);
          else response.end("", head.closeConnection);
        });
        return;
      }
      const gone = new AbortController();
      exchange.gone = gone;
      next = readSlice(body, 0, gone.signal, memory);
      while (next !== undefined) {
        const slice: Uint8Array = await next;
        const end = position + slice.byteLength;
        next = undefined;
        if (exchange.isAborted()) return;
        if (end < totalBytes) {
          next = readSlice(body, end, gone.signal, memory);
          // It is awaited only after this slice is out: until then a failure must not count as unhandled.
          next.catch(() => {});
        }
        answer ??= this.answer(exchange, reply);
        await this.#give(exchange, answer, slice, position, totalBytes);
        if (exchange.isAborted()) return;
        position = end;
      }
    } catch (error) {
      if (exchange.isAborted()) return;
      if (answer !== undefined) {
        pipeline.brokenOff(error, exchange, traceId, position);
        // The client has been promised more bytes: only a broken connection tells it that they will not come.
        response.close();
      } else {
        const failure = this.answer(exchange, pipeline.failure(error, exchange, traceId));
        answer = failure;
        response.cork(() => sendWhole(exchange, failure, failure.body as Uint8Array));
      }
    } finally {
      // Of a client that was gone before: its request counts too.
      if (answer === undefined) this.answer(exchange, reply);
      // A read ahead still uses what release() gives back.
      await next?.catch(() => {});
      memory.release();
      body.release();
    }
  }

  /** Hands over the slice that stands at `start` of the whole, behind the head when it is the first; until it is taken or the client is gone. */
  #give(exchange: Exchange, reply: Reply, slice: Uint8Array, start: number, totalBytes: number): Promise<void> {
    const { response } = exchange;
    return new Promise((resolve) => {
      exchange.onAborted = resolve;
      response.cork(() => {
        if (start === 0) {
          writeHead(exchange, reply);
          // By hand, and the client must do it: tryEnd cannot close the connection behind itself.
          if (reply.closeConnection) response.writeHeader("Connection", "close");
        }
        const [accepted, finished] = response.tryEnd(slice, totalBytes);
        if (accepted || finished) resolve();
        else this.#offerRest(exchange, slice, start, totalBytes, resolve);
      });
    });
  }

  /** Offers what a client did not take at once, whenever there is room for it, until all is taken, or it is gone or cut as stalled. */
  #offerRest(exchange: Exchange, slice: Uint8Array, start: number, totalBytes: number, done: () => void): void {
    const { response } = exchange;
    let waits = true;
    const end = () => {
      waits = false;
      exchange.onAborted = undefined;
      exchange.whenWritable(undefined);
      this.#stalled.remove(client);
      done();
    };
    const offer = (): boolean => {
      const [accepted, finished] = response.tryEnd(slice.subarray(response.getWriteOffset() - start), totalBytes);
      if (accepted || finished) end();
      return accepted;
    };
    const client: WaitingClient = {
      // The system tells of room only when a third of the socket's buffer is free, which a slow client needs longer for than the
      // library's own time limit of some 10 s; each attempt to write starts that anew.
      offer() {
        response.cork(offer);
        return waits ? response.getWriteOffset() : totalBytes;
      },
      cut: () => closeQuietly(response),
    };
    exchange.onAborted = end;
    this.#stalled.add(client, response.getWriteOffset());
    exchange.whenWritable(offer);
  }
}

/**
 * Whether the library may close the connection behind the answer itself. A larger one may find no room in the socket, and what the library
 * then holds is in no count, and lost when the server closes.
 */
function isLastAndSmall(closeConnection: boolean | undefined, body: Uint8Array): boolean {
  return closeConnection === true && body.byteLength <= LAST_BYTES;
}

/** Ends a response whose body is empty, left out (HEAD), or the last thing on its connection; the response is corked. */
function sendWhole(exchange: Exchange, reply: Reply, body: Uint8Array | null): void {
  const { response } = exchange;
  writeHead(exchange, reply);
  if (exchange.method === "HEAD" && body !== null) endHead(response, body.byteLength, reply.closeConnection === true);
  else if (body === null) {
    if (reply.closeConnection) response.writeHeader("Connection", "close");
    response.endWithoutBody();
  } else response.end(body, reply.closeConnection);
}

/**
 * Ends the answer to a HEAD request. endWithoutBody(length) of this release leaves the response pending, and the library then closes the
 * connection at its next request; so this is the one place that writes Content-Length by hand.
 */
function endHead(response: UwsResponse, totalBytes: number, closeConnection: boolean): void {
  if (closeConnection) {
    response.endWithoutBody(totalBytes, true);
  } else {
    response.writeHeader("Content-Length", String(totalBytes));
    response.endWithoutBody();
  }
}
