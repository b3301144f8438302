import { LIMITS } from "../../../core/limits.js";
import type { Timers } from "../../../core/timers.js";
import { selectedProtocol } from "../../live/socket-handshake.js";
import type { LiveSocket, LiveStream, MessagePart, Reply } from "../../replies/reply.js";
import type { StalledClients, WaitingClient } from "../stalled-clients.js";
import type { UwsApp, UwsContext, UwsWebSocket } from "../uws-binary.js";
import { closeQuietly, type Exchange, restartClock, writeHead } from "../uws-exchange.js";
import { LiveSockets, type NativeSocket, type OnFailure, type OpenSocket, TOO_LARGE } from "./live-sockets.js";

/** This fits in the library's buffer for corked writes. When the socket is full, the library can lose bytes of a larger write; over TLS it does. */
const WRITE_BYTES = 12 * 1024;

/**
 * Sends a stream to one client, no faster than the client reads. `write` buffers what the socket does not take. It tells whether the socket has taken
 * all that was written before, so a client costs two writes, and the chunk that is being sent.
 */
export class UwsLiveAnswer {
  readonly #exchange: Exchange;
  readonly #stalled: StalledClients;
  #onRoom: (() => void) | undefined;

  constructor(exchange: Exchange, stalled: StalledClients) {
    this.#exchange = exchange;
    this.#stalled = stalled;
  }

  /** Resolves when the answer has ended, or the client is gone. */
  async send(answer: Reply, live: LiveStream): Promise<void> {
    const exchange = this.#exchange;
    const { response } = exchange;
    // Within the request's own callback the library collects all writes, and does not tell whether the socket took them.
    await new Promise(setImmediate);
    if (exchange.method === "HEAD" || exchange.isAborted()) {
      live.release();
      if (!exchange.isAborted()) response.cork(() => sendHead(exchange, answer));
      return;
    }
    exchange.whenAborted(() => live.release());
    response.cork(() => writeLastHead(exchange, answer));
    // The library sends what it has buffered only with a further write.
    exchange.whenWritable(() => {
      if (this.#onRoom !== undefined) this.#onRoom();
      else if (live.filler.byteLength > 0) this.#write(live.filler);
      return true;
    });
    let isTaken = true;
    for (let chunk = await live.next(); chunk !== undefined && !exchange.isAborted(); chunk = await live.next()) {
      isTaken = await this.#sendChunk(chunk, live);
      if (!isTaken || live.cut.aborted) break;
    }
    live.release();
    if (exchange.isAborted()) return;
    // If the library closed the connection here, it would write a header into the body. The head has asked the client to close.
    if (isTaken) response.cork(() => response.end(""));
    else closeQuietly(response);
  }

  /**
   * Resolves with false if the client is gone, or must go. Only a further write sends what the library has buffered, so one follows each that failed.
   * Without a filler, it is that of the next chunk, or the end.
   */
  async #sendChunk(chunk: Uint8Array, { filler, cut }: LiveStream): Promise<boolean> {
    const hasFiller = filler.byteLength > 0;
    for (let at = 0, isTaken = true; at < chunk.byteLength || (!isTaken && hasFiller); at += WRITE_BYTES) {
      isTaken = this.#write(at < chunk.byteLength ? chunk.subarray(at, at + WRITE_BYTES) : filler);
      if (!isTaken && !(await this.#room(cut))) return false;
    }
    return true;
  }

  /** Whether the socket has taken all that was written before. */
  #write(bytes: Uint8Array): boolean {
    const { response } = this.#exchange;
    let isTaken = true;
    response.cork(() => {
      isTaken = response.write(bytes);
    });
    return isTaken;
  }

  /** Resolves with true when the socket has room; with false if the client is gone, or must go. */
  #room(cut: AbortSignal): Promise<boolean> {
    const exchange = this.#exchange;
    return new Promise((resolve) => {
      const done = (hasRoom: boolean) => {
        exchange.onAborted = undefined;
        this.#onRoom = undefined;
        cut.removeEventListener("abort", onCut);
        this.#stalled.remove(client);
        resolve(hasRoom);
      };
      const onCut = () => done(false);
      const client: WaitingClient = {
        offer: () => restartClock(exchange.response),
        cut: () => closeQuietly(exchange.response),
      };
      exchange.onAborted = () => done(false);
      this.#onRoom = () => done(true);
      cut.addEventListener("abort", onCut, { once: true });
      this.#stalled.add(client, undefined);
    });
  }
}

/** Nobody knows the length of the answer to a GET. */
function sendHead(exchange: Exchange, answer: Reply): void {
  writeLastHead(exchange, answer);
  exchange.response.endWithoutBody();
}

/** Tells the client that the connection ends with this answer, and not also that it is kept. */
function writeLastHead(exchange: Exchange, answer: Reply): void {
  writeHead(exchange, { ...answer, closeConnection: true });
  exchange.response.writeHeader("Connection", "close");
}

interface SocketData {
  readonly live: LiveSocket;
  readonly onFailure: OnFailure;
  open: OpenSocket | undefined;
  /** The last part that was sent is not the last of its message. */
  isWithinMessage: boolean;
  /** The client has taken everything. */
  onDrained: (() => void) | undefined;
}

/**
 * The library closes a connection without a close frame if a message exceeds its own limit, so that one is far above ours. But for each
 * client it holds the part of a message that has come: 64 MiB for 512 clients.
 */
const LIBRARY_MESSAGE_BYTES = 128 * 1024;

/** The WebSockets of an app. */
export class UwsSockets {
  readonly sockets: LiveSockets;

  constructor(pingTimers: Timers | undefined) {
    this.sockets = new LiveSockets(pingTimers);
  }

  /** @param path as routes are declared @param onUpgrade serves the request, and may call `accept` */
  listen(app: UwsApp, path: string, onUpgrade: Parameters<UwsApp["ws"]>[1]["upgrade"]): void {
    app.ws(path.replaceAll(/\{(\w+)\}/g, ":$1"), {
      maxPayloadLength: LIBRARY_MESSAGE_BYTES,
      // Our own pings find dead clients. This ends one that takes the close frame and never closes.
      idleTimeout: 120,
      sendPingsAutomatically: false,
      upgrade: onUpgrade,
      open: (socket) => {
        const data = dataOf(socket);
        data.open = this.sockets.open(nativeSocket(socket, data), data.live, data.onFailure);
      },
      message: (socket, message) => {
        if (message.byteLength > LIMITS.liveMessageBytes) dataOf(socket).open?.close(TOO_LARGE.code, TOO_LARGE.reason);
      },
      pong: (socket) => dataOf(socket).open?.pong(),
      drain: (socket) => {
        if (socket.getBufferedAmount() === 0) dataOf(socket).onDrained?.();
      },
      close: (socket) => {
        const data = dataOf(socket);
        data.onDrained?.();
        data.open?.gone();
      },
    });
  }

  /** Answers with 101. Only within the callback of the request. */
  accept(exchange: Exchange, live: LiveSocket, context: UwsContext, onFailure: OnFailure): void {
    const { response, headers, traceId } = exchange;
    const data: SocketData = { live, onFailure, open: undefined, isWithinMessage: false, onDrained: undefined };
    const key = headers.get("sec-websocket-key") ?? "";
    const protocol = selectedProtocol(headers.get("sec-websocket-protocol")) ?? "";
    exchange.keepRemoteAddress();
    try {
      response.cork(() => {
        response.writeStatus("101 Switching Protocols").writeHeader("X-Trace-ID", traceId);
        // No extensions: the library would compress, at the cost of memory for each client.
        response.upgrade(data, key, protocol, "", context);
      });
    } catch (error) {
      live.release();
      throw error;
    }
  }
}

/** What was given to `upgrade` becomes the socket's own properties. */
function dataOf(socket: UwsWebSocket): SocketData {
  return socket.getUserData() as SocketData;
}

function nativeSocket(socket: UwsWebSocket, data: SocketData): NativeSocket {
  return {
    send: (part) =>
      new Promise((resolve) => {
        data.onDrained = resolve;
        socket.cork(() => sendPart(socket, part, data.isWithinMessage));
        data.isWithinMessage = !part.isLast;
        if (socket.getBufferedAmount() === 0) resolve();
      }),
    ping: () => void socket.ping(),
    close: (code, reason) => socket.end(code, reason),
    drop: () => socket.close(),
  };
}

function sendPart(socket: UwsWebSocket, { bytes, isLast }: MessagePart, isWithinMessage: boolean): void {
  if (isWithinMessage) {
    if (isLast) socket.sendLastFragment(bytes);
    else socket.sendFragment(bytes);
  } else if (isLast) socket.send(bytes, false);
  else socket.sendFirstFragment(bytes, false);
}
