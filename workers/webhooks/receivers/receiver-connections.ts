import type { Socket } from "node:net";
import { type buildConnector, Client, type Dispatcher } from "undici";
import { LIMITS } from "../../../core/limits.js";

/** One connection to a receiver, with at most one request on it at a time. */
export class ReceiverConnection {
  readonly origin: string;
  readonly #client: Client;
  /** How often it was connected: undici connects anew when it finds the receiver's end closed before it sends. */
  #connects = 0;
  #socket: Socket | null = null;

  constructor(
    origin: string,
    connect: buildConnector.connector,
    onDisconnect: (connection: ReceiverConnection) => void,
  ) {
    this.origin = origin;
    this.#client = new Client(origin, {
      connect: (target, callback) =>
        connect(target, (...connected) => {
          this.#socket = connected[1];
          callback(...connected);
        }),
      pipelining: 1,
      maxHeaderSize: LIMITS.answerHeaderMostBytes,
    });
    this.#client.on("connect", () => this.#connects++);
    this.#client.on("disconnect", () => onDisconnect(this));
  }

  get connects(): number {
    return this.#connects;
  }

  /** The system has not taken all of the request yet. */
  get isSending(): boolean {
    return (this.#socket?.writableLength ?? 0) > 0;
  }

  dispatch(request: Dispatcher.DispatchOptions, handlers: Dispatcher.DispatchHandlers): void {
    this.#client.dispatch(request, handlers);
  }

  /** Closes it at once, whatever is under way. */
  destroy(): Promise<void> {
    // Without an error of its own, a request under way is told that its client is destroyed.
    return this.#client.destroy();
  }
}

/**
 * The connections to receivers that stay open between deliveries: as many to a receiver as deliveries ran at a time, each until the
 * receiver closes it or undici does (after 4 s, or somewhat before what the receiver's `Keep-Alive` names). A pool of our own, in place
 * of undici's Agent, because whoever posts must know whether its connection had been used before, and be able to ask for one that has
 * not; it also forgets receivers that are gone, which Agent keeps for ever.
 */
export class ReceiverConnections {
  readonly #connect: buildConnector.connector;
  readonly #all = new Set<ReceiverConnection>();
  readonly #idle = new Map<string, ReceiverConnection[]>();

  constructor(connect: buildConnector.connector) {
    this.#connect = connect;
  }

  /** Connections that are open, or being opened. */
  get count(): number {
    return this.#all.size;
  }

  /** The one that was used last, which its receiver is the least likely to close now; a new one when all are in use. */
  take(origin: string): ReceiverConnection {
    const idle = this.#idle.get(origin);
    const connection = idle?.pop();
    if (idle?.length === 0) this.#idle.delete(origin);
    return connection ?? this.open(origin);
  }

  open(origin: string): ReceiverConnection {
    const connection = new ReceiverConnection(origin, this.#connect, (closed) => this.#closed(closed));
    this.#all.add(connection);
    return connection;
  }

  /** Its request has come to an end, and another may follow. */
  giveBack(connection: ReceiverConnection): void {
    const idle = this.#idle.get(connection.origin);
    if (idle === undefined) this.#idle.set(connection.origin, [connection]);
    else idle.push(connection);
  }

  /** Closes one that was taken. */
  drop(connection: ReceiverConnection): void {
    if (!this.#all.delete(connection)) return;
    void connection.destroy().catch(() => {});
  }

  async destroy(): Promise<void> {
    this.#idle.clear();
    await Promise.all([...this.#all].map((connection) => connection.destroy().catch(() => {})));
    this.#all.clear();
  }

  /** The receiver has closed it, or its time is over. One that is in use is connected anew, or fails, by undici. */
  #closed(connection: ReceiverConnection): void {
    const idle = this.#idle.get(connection.origin);
    const at = idle?.indexOf(connection) ?? -1;
    if (idle === undefined || at < 0) return;
    idle.splice(at, 1);
    if (idle.length === 0) this.#idle.delete(connection.origin);
    this.drop(connection);
  }
}
