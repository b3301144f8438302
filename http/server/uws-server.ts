import { HeldBodies } from "../replies/held-bodies.js";
import { isStreamBody, type LiveStream, type Reply, type StreamBody } from "../replies/reply.js";
import { ChunkMemory, readChunk } from "../replies/stream-chunks.js";
import { UwsLiveAnswer, UwsSockets } from "./live/uws-live.js";
import { cannotListen, type HttpServer, type HttpServerOptions, TLS_CIPHERS, type TlsFiles } from "./server-options.js";
import { StalledClients, type WaitingClient } from "./stalled-clients.js";
import {
  buildLabel,
  type UwsApp,
  type UwsBuild,
  type UwsContext,
  type UwsRequest,
  type UwsResponse,
} from "./uws-binary.js";
import { closeQuietly, Exchange, endHead, restartClock, sendWhole, writeHead } from "./uws-exchange.js";
import { UwsListening } from "./uws-listening.js";

/** An answer of up to this size fits in the buffer of any socket. */
const LAST_BYTES = 16 * 1024;

/**
 * Most bytes of one write over TLS. Such a write counts as sent only when all of it is sent. During a large one, a slow client would seem to read
 * nothing, and would be cut off.
 */
const TLS_WRITE_BYTES = 64 * 1024;

/** How often a closing server checks whether its last requests have ended. */
const DRAIN_POLL_MS = 10;

/** Serves the pipeline on uWebSockets.js. @throws HttpServerError when the address is taken */
export async function startUwsServer(options: HttpServerOptions, build: UwsBuild): Promise<HttpServer> {
  const { uws } = build;
  const { tls } = options;
  const app = tls === undefined ? uws.App() : uws.SSLApp(sslOptions(tls));
  const sender = new Sender(options);
  for (const path of options.pipeline.socketPaths) {
    sender.sockets.listen(app, path, (response, request, context) =>
      serve(response, request, "GET", options, sender, context),
    );
  }
  // A route of its own for GET: reading the method costs as much as reading the path.
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
    label: buildLabel(build),
    figures: () => ({ openRequests: sender.exchanges.size - sender.streams, heldBytes: sender.held.bytes }),
    close(graceMs) {
      closed ??= drain(app, sender, graceMs, () => listening.close());
      return closed;
    },
  };
}

/** The library itself accepts TLS 1.2 and newer only. */
function sslOptions({ certPath, keyPath }: TlsFiles) {
  return { cert_file_name: certPath, key_file_name: keyPath, ssl_ciphers: TLS_CIPHERS };
}

async function drain(app: UwsApp, sender: Sender, graceMs: number, stopListening: () => void): Promise<void> {
  stopListening();
  // The library does not show which connections are idle, so every answer from now on closes its own. A busy client cannot delay the end.
  sender.drain();
  const deadlineMs = performance.now() + graceMs;
  while ((sender.exchanges.size > 0 || sender.sockets.sockets.size > 0) && performance.now() < deadlineMs) {
    await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS));
  }
  app.close();
  sender.close();
}

function serve(
  response: UwsResponse,
  native: UwsRequest,
  method: string,
  options: HttpServerOptions,
  sender: Sender,
  upgrade?: UwsContext,
): void {
  // A throw out of this callback would end the process.
  try {
    const exchange = new Exchange(response, native, method);
    const reply = options.pipeline.handle(exchange, exchange.traceId);
    if (upgrade !== undefined && !(reply instanceof Promise) && reply.socket !== undefined) {
      sender.answer(exchange, reply);
      const onFailure = (error: unknown) => options.pipeline.failure(error, exchange, exchange.traceId);
      sender.sockets.accept(exchange, reply.socket, upgrade, onFailure);
      return;
    }
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
 * Waits until the library has processed everything that it has read. A further request in the same read then finds this one unanswered, and
 * the library closes the connection instead of serving it.
 */
function turnOfEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Sends replies to clients, as fast as the clients read them. */
class Sender {
  /** Requests that are not answered yet. */
  readonly exchanges = new Set<Exchange>();
  readonly held: HeldBodies;
  readonly sockets: UwsSockets;
  /** Streams among the exchanges: their answers have begun. */
  streams = 0;
  readonly #options: HttpServerOptions;
  readonly #stalled: StalledClients;
  isDraining = false;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    this.held = new HeldBodies(options.heldBodyBytes);
    this.#stalled = new StalledClients(options.stallClock);
    this.sockets = new UwsSockets(options.pingTimers);
  }

  /** From now on every answer closes its connection. */
  drain(): void {
    this.isDraining = true;
    this.#options.pipeline.drain();
  }

  /** Every connection is gone. */
  close(): void {
    this.#stalled.close();
  }

  /** The answer to send for a reply. Called exactly once for every request. */
  answer(exchange: Exchange, reply: Reply): Reply {
    return this.#options.pipeline.answer(reply, exchange, exchange.traceId, this.held);
  }

  /**
   * Answers within the request's callback. It uses tryEnd, which buffers nothing: a client that never reads its answers could otherwise make
   * the library hold any number of them. The part that the socket does not accept waits here. If another request arrives on the connection in
   * the meantime, the library closes it.
   */
  sendNow(exchange: Exchange, reply: Reply, bytes: Uint8Array): void {
    const { response } = exchange;
    writeHead(exchange, reply);
    if (this.#tryEnd(response, bytes, 0, bytes.byteLength)) return;
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
      const reply = this.#options.pipeline.withoutSocket(await pending, exchange, exchange.traceId);
      if (reply.live !== undefined) {
        await this.#sendLive(exchange, reply, reply.live);
        return;
      }
      if (isStreamBody(reply.body)) {
        await this.#sendStream(exchange, reply, reply.body);
        return;
      }
      const answer = this.answer(exchange, reply);
      const body = answer.body as Uint8Array | null;
      if (body === null || exchange.method === "HEAD" || isLastAndSmall(answer.closeConnection, body)) {
        // So that nothing is read after a request with bad framing, and answers that bypass tryEnd do not pile up.
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

  async #sendLive(exchange: Exchange, reply: Reply, live: LiveStream): Promise<void> {
    this.streams++;
    try {
      await new UwsLiveAnswer(exchange, this.#stalled).send(this.answer(exchange, reply), live);
    } finally {
      this.streams--;
      live.release();
    }
  }

  /**
   * Sends a body of known length chunk by chunk, reading the next chunk while one is sent. A client costs two chunks of memory, however large
   * the body and however slow the client. Reading stops when the client leaves.
   */
  async #sendStream(exchange: Exchange, reply: Reply, body: StreamBody): Promise<void> {
    const { response, traceId } = exchange;
    const { totalBytes } = body;
    const { pipeline } = this.#options;
    let position = 0;
    let next: Promise<Uint8Array> | undefined;
    let answer: Reply | undefined;
    const memory = new ChunkMemory();
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
      next = readChunk(body, 0, gone.signal, memory);
      while (next !== undefined) {
        const chunk: Uint8Array = await next;
        const end = position + chunk.byteLength;
        next = undefined;
        if (exchange.isAborted()) return;
        if (end < totalBytes) {
          next = readChunk(body, end, gone.signal, memory);
          // It is awaited only after this chunk is sent. Until then a failure must not count as unhandled.
          next.catch(() => {});
        }
        answer ??= this.answer(exchange, reply);
        await this.#give(exchange, answer, chunk, position, totalBytes);
        if (exchange.isAborted()) return;
        position = end;
      }
    } catch (error) {
      if (exchange.isAborted()) return;
      if (answer !== undefined) {
        pipeline.brokenOff(error, exchange, traceId, position);
        // The client expects more bytes. Only a broken connection tells it that they will not come.
        response.close();
      } else {
        const failure = this.answer(exchange, pipeline.failure(error, exchange, traceId));
        answer = failure;
        response.cork(() => sendWhole(exchange, failure, failure.body as Uint8Array));
      }
    } finally {
      // A request counts even if its client left before the answer.
      if (answer === undefined) this.answer(exchange, reply);
      // The read ahead still uses the memory that release() gives back.
      await next?.catch(() => {});
      memory.release();
      body.release();
    }
  }

  /** Sends one chunk, after the head if it is the first. Resolves when the socket has accepted it or the client is gone. @param start position of the chunk in the body */
  #give(exchange: Exchange, reply: Reply, chunk: Uint8Array, start: number, totalBytes: number): Promise<void> {
    const { response } = exchange;
    return new Promise((resolve) => {
      exchange.onAborted = resolve;
      response.cork(() => {
        if (start === 0) {
          writeHead(exchange, reply);
          // tryEnd cannot close the connection afterwards, so the client is asked to do it.
          if (reply.closeConnection) response.writeHeader("Connection", "close");
        }
        if (this.#tryEnd(response, chunk, 0, totalBytes)) resolve();
        else this.#offerRest(exchange, chunk, start, totalBytes, resolve);
      });
    });
  }

  /** Gives the socket what it takes of a chunk, from a position in it. @returns whether that was all */
  #tryEnd(response: UwsResponse, chunk: Uint8Array, at: number, totalBytes: number): boolean {
    const mostBytes = this.#options.tls === undefined ? totalBytes : TLS_WRITE_BYTES;
    for (let from = at; ; from += mostBytes) {
      const [accepted, finished] = response.tryEnd(chunk.subarray(from, from + mostBytes), totalBytes);
      if (finished || !accepted || from + mostBytes >= chunk.byteLength) return finished || accepted;
    }
  }

  /** Sends the rest of a chunk whenever the socket has room, until all is accepted, the client leaves, or it is cut off as stalled. */
  #offerRest(exchange: Exchange, chunk: Uint8Array, start: number, totalBytes: number, done: () => void): void {
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
      const isGiven = this.#tryEnd(response, chunk, response.getWriteOffset() - start, totalBytes);
      if (isGiven) end();
      return isGiven;
    };
    const client: WaitingClient = {
      // The system reports room only when a third of the socket's buffer is free. A slow client needs longer for that than the library's
      // own time limit of some 10 s; each attempt to write restarts that limit. Over TLS a corked attempt must not follow one that failed: the
      // build of 2023 first sends what fits in its buffer, and TLS takes only what it was given before. Then nothing is ever sent again.
      offer: () => {
        if (this.#options.tls === undefined) response.cork(offer);
        else restartClock(response);
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
 * Whether the library may send the answer and close the connection by itself. A larger answer may not fit in the socket: the library would
 * hold the rest uncounted, and lose it when the server closes.
 */
function isLastAndSmall(closeConnection: boolean | undefined, body: Uint8Array): boolean {
  return closeConnection === true && body.byteLength <= LAST_BYTES;
}
