import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { WebSocketServer } from "ws";
import { LIMITS } from "../../../core/limits.js";
import type { Timers } from "../../../core/timers.js";
import { selectedProtocol } from "../../live/socket-handshake.js";
import type { LiveSocket, LiveStream } from "../../replies/reply.js";
import type { Exchange } from "../node-exchange.js";
import type { NodeWriter } from "../node-writer.js";
import { LiveSockets, type OnFailure, type OpenSocket } from "./live-sockets.js";

/** Sends a stream after its head, no faster than the client reads. Resolves when it has ended, or the client is gone. */
export async function sendLive({ response }: Exchange, live: LiveStream, writer: NodeWriter): Promise<void> {
  const onGone = () => live.release();
  // A client that takes nothing must not hold up a stop.
  const onCut = () => {
    if (response.writableLength > 0) response.destroy();
  };
  response.once("close", onGone);
  live.cut.addEventListener("abort", onCut, { once: true });
  try {
    for (let chunk = await live.next(); chunk !== undefined && !response.closed; chunk = await live.next()) {
      await writer.write(response, chunk);
    }
    await writer.end(response, null);
  } finally {
    live.cut.removeEventListener("abort", onCut);
    response.off("close", onGone);
    live.release();
  }
}

const ASKS_FOR_UPGRADE = Symbol("asksForUpgrade");

/** A request class for which only these paths are upgraded: node:http treats every other request with `Upgrade` as if it had none. */
export function requestClassFor(base: typeof IncomingMessage, socketPaths: readonly string[]): typeof IncomingMessage {
  const patterns = socketPaths.map((path) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/?]+")}(?:\\?|$)`));
  return class UpgradableRequest extends base {
    /** Set within the constructor of the class above, so it is no private field. */
    declare [ASKS_FOR_UPGRADE]: unknown;

    get upgrade(): unknown {
      if (this[ASKS_FOR_UPGRADE] !== true || this.method === "CONNECT") return this[ASKS_FOR_UPGRADE];
      return this.method === "GET" && patterns.some((pattern) => pattern.test(this.url ?? ""));
    }

    set upgrade(asks: unknown) {
      this[ASKS_FOR_UPGRADE] = asks;
    }
  };
}

/** What node:http gives for a request that asks for a WebSocket. */
interface Upgrade {
  request: IncomingMessage;
  socket: Socket;
  head: Buffer;
  traceId: string;
}

/** The WebSockets of a server, spoken by the package ws. */
export class NodeSockets {
  readonly sockets: LiveSockets;
  readonly #ws = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: LIMITS.liveMessageBytes,
    handleProtocols: (_, request) => selectedProtocol(request.headers["sec-websocket-protocol"]) ?? false,
  });
  readonly #traceIds = new WeakMap<IncomingMessage, string>();

  constructor(pingTimers: Timers | undefined) {
    this.sockets = new LiveSockets(pingTimers);
    this.#ws.on("headers", (lines, request) => lines.push(`X-Trace-ID: ${this.#traceIds.get(request)}`));
  }

  /** Answers with 101. */
  accept({ request, socket, head, traceId }: Upgrade, live: LiveSocket, onFailure: OnFailure): void {
    this.#traceIds.set(request, traceId);
    let open: OpenSocket | undefined;
    this.#ws.handleUpgrade(request, socket, head, (ws) => {
      const opened = this.sockets.open(
        {
          send: ({ bytes, isLast }) =>
            new Promise((resolve) => ws.send(bytes, { binary: false, fin: isLast }, () => resolve())),
          ping: () => ws.ping(),
          close: (code, reason) => ws.close(code, reason),
          drop: () => ws.terminate(),
        },
        live,
        onFailure,
      );
      open = opened;
      ws.on("pong", () => opened.pong());
      // An error of the protocol: ws closes the connection with the code for it.
      ws.on("error", () => {});
      ws.on("close", () => opened.gone());
    });
    // The socket is gone, or ws refused the handshake: it calls back at once or never.
    if (open === undefined) live.release();
  }
}
