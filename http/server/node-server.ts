import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { Server as NetServer, type Socket } from "node:net";
import { nodeFileSystem, readWholeFile } from "../../storage/disk/file-system.js";
import { errorReply } from "../replies/error-reply.js";
import { HeldBodies } from "../replies/held-bodies.js";
import { type HeaderLines, isStreamBody, type Reply, type StreamBody } from "../replies/reply.js";
import { statusLine } from "../replies/status-lines.js";
import { readSlice, SliceMemory } from "../replies/stream-slices.js";
import { RequestHeaders } from "../requests/request-headers.js";
import { type IncomingRequest, requestTraceId } from "../requests/request-pipeline.js";
import type { Route } from "../requests/route.js";
import { freshTraceId } from "../requests/trace-id.js";
import type { FrontFigures } from "../service/metrics.js";
import { boundConnections } from "./node-connections.js";
import { NodeWriter } from "./node-writer.js";
import {
  cannotListen,
  type HttpServer,
  type HttpServerOptions,
  IDLE_MS,
  KEEP_ALIVE_LINES,
  TLS_CIPHERS,
} from "./server-options.js";

/** Names and values of a request's head together. */
const HEAD_BYTES = 16 * 1024;

/** How long a request's head may take to come, and how often that is looked at. */
const HEAD_MS = 10_000;
const HEAD_LOOK_MS = 1_000;

/**
 * Requests that may wait on one connection for the answers before theirs: from the first number on nothing more is read. One read of 64
 * KiB can hold some 1,600 of the smallest, which node:http hands out all the same.
 */
const WAITING_REQUESTS = 32;
const WAITING_REQUESTS_LIMIT = 2_000;

/** How often a closing server ends connections that have become idle. */
const DRAIN_POLL_MS = 10;

/** Of a client that does not go on with its TLS handshake: as long as a head may take. */
const NODE_TLS = { ciphers: TLS_CIPHERS, minVersion: "TLSv1.2", handshakeTimeout: HEAD_MS } as const;

/** Serves the pipeline on node:http, or node:https. @param label what to call it @throws HttpServerError when the address is taken */
export async function startNodeServer(options: HttpServerOptions, label: string): Promise<HttpServer> {
  const { tls, host, port } = options;
  const settings = {
    maxHeaderSize: HEAD_BYTES,
    // The pipeline's own check answers with an envelope.
    requireHostHeader: false,
    insecureHTTPParser: false,
    headersTimeout: HEAD_MS,
    // The pipeline has a deadline for the body.
    requestTimeout: 0,
    connectionsCheckingInterval: HEAD_LOOK_MS,
    keepAliveTimeout: IDLE_MS,
  };
  const server: Server =
    tls === undefined
      ? createServer(settings)
      : createTlsServer({
          ...settings,
          ...NODE_TLS,
          cert: Buffer.from(await readWholeFile(nodeFileSystem, tls.certPath)),
          key: Buffer.from(await readWholeFile(nodeFileSystem, tls.keyPath)),
        });
  // Without a bound of their number: node:http leaves out those beyond it, a second Content-Length among them. HEAD_BYTES bounds them.
  server.maxHeadersCount = 0;
  boundConnections(server, options);
  const connections = new Connections(options);
  const take = (request: IncomingMessage, response: ServerResponse) => connections.take(request, response);
  server.on("request", take);
  // With a listener, node:http leaves it to us whether the body is asked for, and an expectation it does not know is no error.
  server.on("checkContinue", take);
  server.on("checkExpectation", take);
  // Of a handshake that fails or does not come to its end: node:https would leave it open.
  server.on("tlsClientError", (_, socket) => socket.destroy());
  server.on("clientError", (error, socket) => connections.refuse(error, socket as Socket));
  await new Promise<void>((resolve, reject) => {
    const fail = (error: Error): void => reject(cannotListen(options, error.message));
    server.once("error", fail);
    server.listen({ host, port, exclusive: true }, () => {
      server.off("error", fail);
      resolve();
    });
  });
  // A connection that could not be accepted: its client comes again. Without a listener it would end the process.
  server.on("error", (error) => options.pipeline.acceptFailed(error));
  let closed: Promise<void> | undefined;
  return {
    port: (server.address() as { port: number }).port,
    label,
    figures: () => connections.figures(),
    close(graceMs) {
      closed ??= drain(server, connections, graceMs);
      return closed;
    },
  };
}

async function drain(server: Server, connections: Connections, graceMs: number): Promise<void> {
  // That of node:net: that of node:http would also end connections that it takes for idle.
  const done = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
  connections.drain();
  const deadlineMs = performance.now() + graceMs;
  while (connections.exchangeCount > 0 && performance.now() < deadlineMs) {
    // It takes a connection for idle while the end of an answer still waits in its buffer.
    if (connections.endingCount === 0) server.closeIdleConnections();
    await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS));
  }
  server.closeAllConnections();
  await done;
  // What node:http still has: the interval at which it looks at its connections.
  server.close();
  connections.close();
}

/** One request and what becomes of it. */
class Exchange implements IncomingRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers = new RequestHeaders();
  readonly traceId: string;
  readonly response: ServerResponse;
  readonly #request: IncomingMessage;
  #isRead = false;
  /** Waits for the rest of its body. */
  isReading = false;
  startedMs = 0;
  route: Route | undefined;
  handled: { end(): void } | undefined;
  furtherHeaders: HeaderLines | undefined;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#request = request;
    this.response = response;
    this.method = request.method ?? "";
    const target = request.url ?? "";
    const mark = target.indexOf("?");
    // A copy where there is a query: a part of the target would keep all of it wherever the path, or an id out of it, is kept.
    this.path = mark === -1 ? utf8(target) : utf8Copy(target.slice(0, mark));
    this.query = mark === -1 ? "" : utf8(target.slice(mark + 1));
    const { rawHeaders } = request;
    for (let i = 0; i < rawHeaders.length; i += 2) {
      this.headers.add((rawHeaders[i] as string).toLowerCase(), utf8(rawHeaders[i + 1] as string));
    }
    this.traceId = requestTraceId(this.headers);
  }

  isAborted(): boolean {
    return this.response.destroyed || this.response.closed;
  }

  remoteAddress(): string {
    return this.#request.socket.remoteAddress ?? "";
  }

  whenAborted(listener: () => void): void {
    this.response.once("close", listener);
  }

  readBody(lengthBytes: number): Promise<Uint8Array | undefined> {
    const request = this.#request;
    this.#isRead = true;
    this.isReading = true;
    if (/^100-continue$/i.test(this.headers.get("expect") ?? "")) this.response.writeContinue();
    return new Promise((resolve) => {
      const body = Buffer.allocUnsafeSlow(lengthBytes);
      let position = 0;
      request.on("data", (chunk: Buffer) => {
        body.set(chunk, position);
        position += chunk.byteLength;
      });
      const end = (whole: Uint8Array | undefined) => {
        this.isReading = false;
        resolve(whole);
      };
      request.on("end", () => end(body));
      request.on("close", () => end(undefined));
      request.on("error", () => end(undefined));
    });
  }

  /** What nobody asked for is read away, so that the next request can come. */
  skipBody(): void {
    if (!this.#isRead) this.#request.resume();
  }
}

/** node:http gives bytes as Latin-1; a name in a path, or a value, is UTF-8. */
function utf8(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII
  return /^[\x00-\x7f]*$/.test(text) ? text : utf8Copy(text);
}

/** The same, in memory of its own. */
function utf8Copy(text: string): string {
  return Buffer.from(text, "latin1").toString("utf8");
}

/** What there is of one connection. */
interface Connection {
  /** Requests that came while another one was being answered, in their order. */
  waiting: Exchange[];
  answering: Exchange | undefined;
  /** A refused request has ended it: what still comes on it is not served. */
  isEnded: boolean;
}

class Connections {
  readonly #options: HttpServerOptions;
  readonly #held: HeldBodies;
  readonly #connections = new WeakMap<Socket, Connection>();
  readonly #writer: NodeWriter;
  /** Requests whose answers are not given yet. */
  exchangeCount = 0;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    this.#held = new HeldBodies(options.heldBodyBytes);
    this.#writer = new NodeWriter(options.stallClock);
  }

  figures(): FrontFigures {
    return { openRequests: this.exchangeCount, heldBytes: this.#held.bytes };
  }

  /** From now on every answer is the last of its connection. */
  drain(): void {
    this.#options.pipeline.drain();
  }

  /** Answers of which the end is given to node:http, and not yet on its way. */
  get endingCount(): number {
    return this.#writer.endingCount;
  }

  /** Every connection is gone. */
  close(): void {
    this.#writer.close();
  }

  /** One request after the other: node:http hands out all that stand in one read, whatever became of those before. */
  take(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const connection = this.#of(socket);
    if (connection.isEnded) return;
    if (request.httpVersionMajor !== 1) {
      this.refuse({ name: "Error", message: request.httpVersion, code: "HPE_INVALID_VERSION" }, socket);
      return;
    }
    const exchange = new Exchange(request, response);
    if (connection.answering === undefined) {
      void this.#answerAll(exchange, connection, socket);
      return;
    }
    connection.waiting.push(exchange);
    if (connection.waiting.length === WAITING_REQUESTS) socket.pause();
    if (connection.waiting.length > WAITING_REQUESTS_LIMIT) {
      connection.isEnded = true;
      socket.destroy();
    }
  }

  /** For bytes that are no request to node:http's parser. */
  refuse(error: NodeJS.ErrnoException, socket: Socket): void {
    const connection = this.#of(socket);
    const isSilent = connection.isEnded || socket.bytesRead === 0 || !socket.writable;
    connection.isEnded = true;
    const { answering } = connection;
    // What stands before it is answered, if it does not wait for bytes that will not come.
    if (answering !== undefined && !answering.isReading && error.code !== "ECONNRESET") return;
    if (isSilent || answering !== undefined || error.code === "ECONNRESET" || error.code === "EPIPE") {
      socket.destroy();
      return;
    }
    const message = "what came is not an HTTP request";
    const params = { cause: error.code ?? "" };
    const traceId = freshTraceId();
    const reply = errorReply({ code: "bad_request", message, params }, traceId);
    const body = reply.body as Uint8Array;
    const head = [
      `HTTP/1.1 ${statusLine(reply.status)}`,
      `X-Trace-ID: ${traceId}`,
      `Content-Type: ${reply.contentType}`,
      `Date: ${new Date().toUTCString()}`,
      "Connection: close",
      `Content-Length: ${body.byteLength}`,
    ];
    this.#options.pipeline.answeredByServer(reply.status, traceId, error.code, socket.remoteAddress ?? "");
    socket.write(`${head.join("\r\n")}\r\n\r\n`);
    socket.end(body, () => socket.destroy());
  }

  #of(socket: Socket): Connection {
    let connection = this.#connections.get(socket);
    if (connection === undefined) {
      connection = { waiting: [], answering: undefined, isEnded: false };
      this.#connections.set(socket, connection);
    }
    return connection;
  }

  async #answerAll(first: Exchange, connection: Connection, socket: Socket): Promise<void> {
    let exchange: Exchange | undefined = first;
    while (exchange !== undefined) {
      connection.answering = exchange;
      this.exchangeCount++;
      try {
        await this.#answer(exchange, connection, socket);
      } catch (error) {
        this.#options.pipeline.sendingFailed(error, exchange, exchange.traceId);
        connection.isEnded = true;
        socket.destroy();
      }
      this.exchangeCount--;
      exchange = connection.isEnded || socket.destroyed ? undefined : connection.waiting.shift();
      if (connection.waiting.length === WAITING_REQUESTS - 1) socket.resume();
    }
    connection.answering = undefined;
    if (connection.isEnded) socket.destroySoon();
  }

  async #answer(exchange: Exchange, connection: Connection, socket: Socket): Promise<void> {
    const { traceId } = exchange;
    const { pipeline } = this.#options;
    const pending = pipeline.handle(exchange, traceId);
    exchange.skipBody();
    let reply = await pending;
    if (isStreamBody(reply.body)) {
      const failure = await this.#sendStream(exchange, reply, reply.body, connection, socket);
      if (failure === undefined) return;
      reply = failure;
    }
    const answer = this.#answerOf(exchange, reply, connection);
    if (exchange.isAborted()) return;
    const body = answer.body as Uint8Array | null;
    writeHead(exchange, answer, body?.byteLength);
    if (body === null || exchange.method === "HEAD") {
      await this.#writer.end(exchange.response, null);
      return;
    }
    this.#held.hold(body);
    try {
      await this.#writer.end(exchange.response, body);
    } finally {
      this.#held.release(body);
    }
  }

  /** What is sent for the reply; once for every request. */
  #answerOf(exchange: Exchange, reply: Reply, connection: Connection): Reply {
    const answer = this.#options.pipeline.answer(reply, exchange, exchange.traceId, this.#held);
    if (answer.closeConnection) connection.isEnded = true;
    return answer;
  }

  /**
   * Sends a body slice by slice: one in flight, the next one read meanwhile.
   * @returns what to answer instead when the first slice cannot be read
   */
  async #sendStream(
    exchange: Exchange,
    reply: Reply,
    body: StreamBody,
    connection: Connection,
    socket: Socket,
  ): Promise<Reply | undefined> {
    const { response, traceId } = exchange;
    const { pipeline } = this.#options;
    let position = 0;
    let next: Promise<Uint8Array> | undefined;
    let isAnswered = false;
    const begin = () => {
      isAnswered = true;
      writeHead(exchange, this.#answerOf(exchange, reply, connection), body.totalBytes);
    };
    const memory = new SliceMemory();
    try {
      if (exchange.isAborted()) return undefined;
      if (exchange.method === "HEAD" || body.totalBytes === 0) {
        begin();
        await this.#writer.end(response, null);
        return undefined;
      }
      const gone = new AbortController();
      response.once("close", () => gone.abort());
      next = readSlice(body, 0, gone.signal, memory);
      while (next !== undefined) {
        const slice: Uint8Array = await next;
        next = undefined;
        if (exchange.isAborted()) return undefined;
        if (position === 0) begin();
        position += slice.byteLength;
        if (position === body.totalBytes) {
          await this.#writer.end(response, slice);
          return undefined;
        }
        next = readSlice(body, position, gone.signal, memory);
        // It is awaited only after this slice is out: until then a failure must not count as unhandled.
        next.catch(() => {});
        await this.#writer.write(response, slice);
        if (exchange.isAborted()) return undefined;
      }
      return undefined;
    } catch (error) {
      if (exchange.isAborted()) return undefined;
      if (!isAnswered) {
        isAnswered = true;
        return pipeline.failure(error, exchange, traceId);
      }
      pipeline.brokenOff(error, exchange, traceId, position);
      // The client has been promised more bytes: only a broken connection tells it that they will not come.
      socket.destroy();
      return undefined;
    } finally {
      // Of a client that was gone before: its request counts too.
      if (!isAnswered) this.#answerOf(exchange, reply, connection);
      // A read ahead still uses what release() gives back.
      await next?.catch(() => {});
      memory.release();
      body.release();
    }
  }
}

function writeHead(
  { response, traceId, furtherHeaders = [] }: Exchange,
  reply: Reply,
  totalBytes: number | undefined,
): void {
  const lines = ["X-Trace-ID", traceId];
  if (reply.contentType !== undefined) lines.push("Content-Type", reply.contentType);
  if (reply.etag) lines.push("ETag", reply.etag);
  if (reply.variesByEncoding) lines.push("Vary", "Accept-Encoding");
  for (const [name, value] of reply.headers ?? []) lines.push(name, value);
  for (const [name, value] of furtherHeaders) lines.push(name, value);
  if (totalBytes !== undefined) lines.push("Content-Length", String(totalBytes));
  if (reply.closeConnection) lines.push("Connection", "close");
  // node:http's own header would give the full limit. This is less, so that a request on its way still finds the connection open.
  else if (response.shouldKeepAlive) for (const [name, value] of KEEP_ALIVE_LINES) lines.push(name, value);
  response.writeHead(reply.status, statusLine(reply.status).slice(4), lines);
}
