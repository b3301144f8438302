import { createServer, IncomingMessage, type Server, ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { Server as NetServer, type Socket } from "node:net";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { readWholeFile } from "../../storage/disk/whole-files.js";
import { errorReply } from "../replies/error-reply.js";
import { HeldBodies } from "../replies/held-bodies.js";
import { isStreamBody, type LiveStream, type Reply, type StreamBody } from "../replies/reply.js";
import { statusLine } from "../replies/status-lines.js";
import { ChunkMemory, readChunk } from "../replies/stream-chunks.js";
import { freshTraceId } from "../requests/trace-id.js";
import type { FrontFigures } from "../service/metrics.js";
import { NodeSockets, requestClassFor, sendLive } from "./live/node-live.js";
import { boundConnections } from "./node-connections.js";
import { Exchange, writeHead } from "./node-exchange.js";
import { NodeWriter } from "./node-writer.js";
import { cannotListen, type HttpServer, type HttpServerOptions, IDLE_MS, TLS_CIPHERS } from "./server-options.js";

/** Limit of the names and values of a request's head. */
const HEAD_BYTES = 16 * 1024;

/** Time limit for a request's head, and how often it is checked. */
const HEAD_MS = 10_000;
const HEAD_LOOK_MS = 1_000;

/**
 * Requests that may wait on one connection. From the first number on, reading pauses; one read of 64 KiB may still bring some 1,600 of the
 * smallest requests, so only the second number closes the connection.
 */
const WAITING_REQUESTS = 32;
const WAITING_REQUESTS_LIMIT = 2_000;

/** How often a closing server ends connections that have become idle. */
const DRAIN_POLL_MS = 10;

/** TLS settings. A handshake has as much time as a head. */
const NODE_TLS = { ciphers: TLS_CIPHERS, minVersion: "TLSv1.2", handshakeTimeout: HEAD_MS } as const;

/** Serves the pipeline on node:http, or node:https. @param label name for people @throws HttpServerError if it cannot listen on the address */
export async function startNodeServer(options: HttpServerOptions, label: string): Promise<HttpServer> {
  const { tls, host, port } = options;
  const settings = {
    IncomingMessage: requestClassFor(IncomingMessage, options.pipeline.socketPaths),
    maxHeaderSize: HEAD_BYTES,
    // The pipeline checks Host itself and answers with an error envelope.
    requireHostHeader: false,
    insecureHTTPParser: false,
    headersTimeout: HEAD_MS,
    // The pipeline has its own deadline for the body.
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
  // No limit on the number of headers: node:http would drop further ones, such as a second Content-Length. HEAD_BYTES limits them.
  server.maxHeadersCount = 0;
  boundConnections(server, options);
  const connections = new Connections(options);
  const take = (request: IncomingMessage, response: ServerResponse) => connections.take(request, response);
  server.on("request", take);
  server.on("upgrade", (request, socket, head) => connections.upgrade(request, socket as Socket, head));
  // With these listeners we decide whether to ask for the body, and an unknown Expect is no error.
  server.on("checkContinue", take);
  server.on("checkExpectation", take);
  // node:https would leave the socket of a failed or unfinished handshake open.
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
  // close() of node:net, because that of node:http would also end connections that it considers idle.
  const done = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
  connections.drain();
  const deadlineMs = performance.now() + graceMs;
  while ((connections.exchangeCount > 0 || connections.sockets.sockets.size > 0) && performance.now() < deadlineMs) {
    // node:http considers a connection idle while the end of an answer is still in its buffer.
    if (connections.endingCount === 0) server.closeIdleConnections();
    await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS));
  }
  server.closeAllConnections();
  connections.sockets.sockets.dropAll();
  await done;
  // Ends the interval at which node:http checks its connections.
  server.close();
  connections.close();
}

/** State of one connection. */
interface Connection {
  /** Requests that arrived while another one was being answered, in order. */
  waiting: Exchange[];
  answering: Exchange | undefined;
  /** A refused request has ended the connection: further requests on it are not served. */
  isEnded: boolean;
}

class Connections {
  readonly #options: HttpServerOptions;
  readonly #held: HeldBodies;
  readonly #connections = new WeakMap<Socket, Connection>();
  readonly #writer: NodeWriter;
  readonly sockets: NodeSockets;
  /** Streams among the exchanges: their answers have begun. */
  #streams = 0;
  /** Requests that are not answered yet. */
  exchangeCount = 0;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    this.#held = new HeldBodies(options.heldBodyBytes);
    this.#writer = new NodeWriter(options.stallClock);
    this.sockets = new NodeSockets(options.pingTimers);
  }

  figures(): FrontFigures {
    return { openRequests: this.exchangeCount - this.#streams, heldBytes: this.#held.bytes };
  }

  /** From now on every answer closes its connection. */
  drain(): void {
    this.#options.pipeline.drain();
  }

  /** Answers whose end has been given to node:http but not yet sent. */
  get endingCount(): number {
    return this.#writer.endingCount;
  }

  /** Every connection is gone. */
  close(): void {
    this.#writer.close();
  }

  /** Queues the requests of a connection: node:http hands out all requests of one read at once. */
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

  /** Serves a request that asks for a WebSocket. If it gets none, the connection ends with the answer. */
  upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const connection = this.#of(socket);
    // No client asks for a WebSocket while its last request is not answered yet.
    if (connection.answering !== undefined || connection.isEnded) {
      socket.destroy();
      return;
    }
    socket.on("error", () => {});
    const response = new ServerResponse(request);
    const exchange = new Exchange(request, response);
    const { pipeline } = this.#options;
    const { traceId } = exchange;
    const reply = pipeline.handle(exchange, traceId);
    if (!(reply instanceof Promise) && reply.socket !== undefined) {
      this.#answerOf(exchange, reply, connection);
      const onFailure = (error: unknown) => pipeline.failure(error, exchange, traceId);
      this.sockets.accept({ request, socket, head, traceId }, reply.socket, onFailure);
      return;
    }
    response.assignSocket(socket);
    response.shouldKeepAlive = false;
    connection.answering = exchange;
    connection.isEnded = true;
    void Promise.resolve(reply)
      .then((answer) => this.#send(exchange, { ...answer, closeConnection: true }, connection, socket))
      .catch(() => {})
      .finally(() => socket.destroySoon());
  }

  /** Answers bytes that node:http's parser does not accept as a request. */
  refuse(error: NodeJS.ErrnoException, socket: Socket): void {
    const connection = this.#of(socket);
    const isSilent = connection.isEnded || socket.bytesRead === 0 || !socket.writable;
    connection.isEnded = true;
    const { answering } = connection;
    // The request before it is still answered, unless it waits for a body that will not come.
    if (answering !== undefined && !answering.isReading && error.code !== "ECONNRESET") return;
    if (isSilent || answering !== undefined || error.code === "ECONNRESET" || error.code === "EPIPE") {
      socket.destroy();
      return;
    }
    const message = "the bytes on this connection are not a valid HTTP request";
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
    await this.#send(exchange, await pending, connection, socket);
  }

  async #send(exchange: Exchange, made: Reply, connection: Connection, socket: Socket): Promise<void> {
    let reply = this.#options.pipeline.withoutSocket(made, exchange, exchange.traceId);
    if (reply.live !== undefined) {
      await this.#sendLive(exchange, reply, reply.live, connection);
      return;
    }
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

  async #sendLive(exchange: Exchange, reply: Reply, live: LiveStream, connection: Connection): Promise<void> {
    this.#streams++;
    try {
      const answer = this.#answerOf(exchange, reply, connection);
      if (exchange.isAborted()) return;
      writeHead(exchange, answer, undefined);
      if (exchange.method === "HEAD") await this.#writer.end(exchange.response, null);
      else await sendLive(exchange, live, this.#writer);
    } finally {
      this.#streams--;
      live.release();
    }
  }

  /** The answer to send for a reply. Called exactly once for every request. */
  #answerOf(exchange: Exchange, reply: Reply, connection: Connection): Reply {
    const answer = this.#options.pipeline.answer(reply, exchange, exchange.traceId, this.#held);
    if (answer.closeConnection) connection.isEnded = true;
    return answer;
  }

  /**
   * Sends a body chunk by chunk, reading the next chunk while one is sent.
   * @returns the error to answer instead if the first chunk cannot be read
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
    const memory = new ChunkMemory();
    try {
      if (exchange.isAborted()) return undefined;
      if (exchange.method === "HEAD" || body.totalBytes === 0) {
        begin();
        await this.#writer.end(response, null);
        return undefined;
      }
      const gone = new AbortController();
      response.once("close", () => gone.abort());
      next = readChunk(body, 0, gone.signal, memory);
      while (next !== undefined) {
        const chunk: Uint8Array = await next;
        next = undefined;
        if (exchange.isAborted()) return undefined;
        if (position === 0) begin();
        position += chunk.byteLength;
        if (position === body.totalBytes) {
          await this.#writer.end(response, chunk);
          return undefined;
        }
        next = readChunk(body, position, gone.signal, memory);
        // It is awaited only after this chunk is sent. Until then a failure must not count as unhandled.
        next.catch(() => {});
        await this.#writer.write(response, chunk);
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
      // The client expects more bytes. Only a broken connection tells it that they will not come.
      socket.destroy();
      return undefined;
    } finally {
      // A request counts even if its client left before the answer.
      if (!isAnswered) this.#answerOf(exchange, reply, connection);
      // The read ahead still uses the memory that release() gives back.
      await next?.catch(() => {});
      memory.release();
      body.release();
    }
  }
}
