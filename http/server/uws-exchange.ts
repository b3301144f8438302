import type { HeaderLines, Reply } from "../replies/reply.js";
import { statusLine } from "../replies/status-lines.js";
import { type IncomingRequest, requestTraceId } from "../requests/incoming-request.js";
import { RequestHeaders } from "../requests/request-headers.js";
import type { Route } from "../requests/route.js";
import { TRACE_ID_DIGITS } from "../requests/trace-id.js";
import { KEEP_ALIVE_LINES } from "./server-options.js";
import type { UwsRequest, UwsResponse } from "./uws-binary.js";

/** Target of `addHeader`: a closure for each request would cost more than copying its header lines. */
let headersBeingRead: RequestHeaders;
const addHeader = (name: string, value: string): void => headersBeingRead.add(name, value);

// Among the options of a Connection header (RFC 9112, section 9.6).
const CLOSE = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i;

/** One request and its answer. The native request is valid only during its callback, so everything is copied before. */
export class Exchange implements IncomingRequest {
  readonly method: string;
  readonly path: string;
  readonly headers = new RequestHeaders();
  readonly traceId: string;
  /** The client sent `Connection: close`: further requests on this connection must not be run. */
  readonly isLast: boolean;
  readonly response: UwsResponse;
  readonly #native: UwsRequest;
  #query: string | undefined;
  #aborted = false;
  #keptAddress: string | undefined;
  #abortListener: (() => void) | undefined;
  /** Called when the client leaves. */
  onAborted: (() => void) | undefined;
  /** Sends more when the socket has room; undefined while there is nothing to send. */
  #offer: (() => boolean) | undefined;
  #hearsOfRoom = false;
  /** Aborted when the client leaves, to end reads for it. */
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
    // forEach, because getHeader gives only the first of several lines and does not tell an empty line from none.
    headersBeingRead = this.headers;
    request.forEach(addHeader);
    this.traceId = requestTraceId(this.headers);
    const connection = this.headers.get("connection");
    this.isLast = connection !== undefined && CLOSE.test(connection);
  }

  /** Read on first use: most routes have no query. */
  get query(): string {
    this.#query ??= this.#native.getQuery() ?? "";
    return this.#query;
  }

  isAborted(): boolean {
    return this.#aborted;
  }

  remoteAddress(): string {
    if (this.#keptAddress !== undefined) return this.#keptAddress;
    return this.#aborted ? "" : Buffer.from(this.response.getRemoteAddressAsText()).toString("latin1");
  }

  /** Called before the connection becomes a WebSocket: after that the response does not know the address any more. */
  keepRemoteAddress(): void {
    this.#keptAddress = this.remoteAddress();
  }

  whenAborted(listener: () => void): void {
    this.#abortListener = listener;
  }

  readBody(lengthBytes: number): Promise<Uint8Array | undefined> {
    return new Promise((resolve) => {
      // Allocated whole: a body that arrives byte by byte must not cost one object for each byte.
      const body = Buffer.allocUnsafeSlow(lengthBytes);
      let position = 0;
      this.onAborted = () => resolve(undefined);
      this.response.onData((chunk, isLast) => {
        // Copied: the chunk's memory belongs to the library.
        body.set(new Uint8Array(chunk), position);
        position += chunk.byteLength;
        if (isLast) resolve(body);
      });
    });
  }

  /**
   * Calls `offer` whenever the socket has room. One native listener serves the whole answer, because the library drops a listener that is
   * registered while another one runs.
   */
  whenWritable(offer: (() => boolean) | undefined): void {
    this.#offer = offer;
    if (this.#hearsOfRoom || offer === undefined) return;
    this.#hearsOfRoom = true;
    // It stays registered: the socket can become writable while the next chunk is still being read.
    this.response.onWritable(() => this.#offer === undefined || this.#offer());
  }

  /** Must be called within the request's callback if the callback returns before the whole answer is given. */
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

export function closeQuietly(response: UwsResponse): void {
  try {
    response.close();
  } catch {
    // The request was answered or closed before.
  }
}

/** The library closes a connection some 10 s after a write that the socket did not take. */
export function restartClock(response: UwsResponse): undefined {
  response.pause();
  response.resume();
}

export function writeHead({ response, traceId, furtherHeaders, isLast }: Exchange, reply: Reply): void {
  if (reply.status !== 200) response.writeStatus(statusLine(reply.status));
  // In one call, because each call costs as much as the rest of the head. The library writes values as they are, line ends included. These
  // values contain none from outside: hex digits, the route's own content type, base64 in quotes.
  const value = isLast || reply.closeConnection ? traceId + linesOf(reply) : linesWithKeepAlive(reply, traceId);
  response.writeHeader("X-Trace-ID", value);
  // One call each: these values may contain text from outside, such as file names.
  if (reply.headers !== undefined) for (const [name, value] of reply.headers) response.writeHeader(name, value);
  if (furtherHeaders !== undefined) for (const [name, value] of furtherHeaders) response.writeHeader(name, value);
}

/** The header lines after the first, each preceded by a line end. */
function linesOf(reply: Reply): string {
  let lines = "";
  if (reply.contentType !== undefined) lines += `\r\nContent-Type: ${reply.contentType}`;
  if (reply.etag) lines += `\r\nETag: ${reply.etag}`;
  if (reply.variesByEncoding) lines += "\r\nVary: Accept-Encoding";
  return lines;
}

const KEEP_ALIVE = KEEP_ALIVE_LINES.map(([name, value]) => `\r\n${name}: ${value}`).join("");

/** The trace id and the header lines after it, for an answer that keeps its connection open. */
function linesWithKeepAlive(reply: Reply, traceId: string): string | Uint8Array {
  return reply.isKept ? keptLines(reply, traceId) : traceId + linesOf(reply) + KEEP_ALIVE;
}

/**
 * The same, as bytes cached in the reply; each answer's trace id is written into them. A string built for every answer would be copied three
 * times. The bytes must be given to the library at once, which copies them.
 */
function keptLines(reply: Reply, traceId: string): Uint8Array {
  reply.lines ??= new Uint8Array(Buffer.from(traceId + linesOf(reply) + KEEP_ALIVE, "latin1"));
  const lines = reply.lines;
  for (let i = 0; i < TRACE_ID_DIGITS; i++) lines[i] = traceId.charCodeAt(i);
  return lines;
}

/** Sends an answer without a body, to HEAD, or as the last of its connection. The response must be corked. */
export function sendWhole(exchange: Exchange, reply: Reply, body: Uint8Array | null): void {
  const { response } = exchange;
  writeHead(exchange, reply);
  if (exchange.method === "HEAD" && body !== null) endHead(response, body.byteLength, reply.closeConnection === true);
  else if (body === null) {
    if (reply.closeConnection) response.writeHeader("Connection", "close");
    response.endWithoutBody();
  } else response.end(body, reply.closeConnection);
}

/**
 * Ends the answer to a HEAD request. In this release endWithoutBody(length) leaves the response pending, and the library then closes the
 * connection at the next request. So this is the only place that writes Content-Length by hand.
 */
export function endHead(response: UwsResponse, totalBytes: number, closeConnection: boolean): void {
  if (closeConnection) {
    response.endWithoutBody(totalBytes, true);
  } else {
    response.writeHeader("Content-Length", String(totalBytes));
    response.endWithoutBody();
  }
}
