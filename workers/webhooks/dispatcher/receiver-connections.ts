import type { Socket } from "node:net";
import { type buildConnector, Client, type Dispatcher } from "undici";
import { LIMITS } from "../../../core/limits.js";
import { descriptorLimit } from "../../../storage/disk/file-system.js";
import { mostUnderWay } from "../deliveries/delivery-queue.js";

/** One connection to a receiver, with at most one request on it at a time. */
export class ReceiverConnection {
  readonly origin: string;
  readonly #client: Client;
  /**
   * How often it was connected. undici connects again if the receiver has closed the connection before a request is
   * sent.
   */
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

  /** True while the system has not taken all bytes of the request. */
  get isSending(): boolean {
    return (this.#socket?.writableLength ?? 0) > 0;
  }

  dispatch(request: Dispatcher.DispatchOptions, handlers: Dispatcher.DispatchHandlers): void {
    this.#client.dispatch(request, handlers);
  }

  /** Closes it at once, even with a request under way. */
  destroy(): Promise<void> {
    // A request under way fails with undici's own error.
    return this.#client.destroy();
  }
}

/**
 * The connections to receivers, which stay open between deliveries. A receiver has as many as the most deliveries that
 * ran to it at one time. Each stays open until the receiver closes it or undici does (after 4 s, or somewhat before the
 * time in the receiver's `Keep-Alive`).
 *
 * This replaces undici's Agent, because a delivery must know whether its connection was used before, and be able to ask
 * for a new one. It also forgets receivers that are gone, which Agent never does.
 */
export class ReceiverConnections {
  readonly #connect: buildConnector.connector;
  readonly #most: number;
  readonly #all = new Set<ReceiverConnection>();
  readonly #idle = new Map<string, ReceiverConnection[]>();

  /** @param most connections that are kept for a further request, together with those in use */
  constructor(connect: buildConnector.connector, most = 2 * mostUnderWay(descriptorLimit())) {
    this.#connect = connect;
    this.#most = most;
  }

  /** Takes the connection that was used last, which the receiver is least likely to close now. Opens a new one if all are in use. */
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

  /** Gives back a connection whose request has ended. Another request may follow on it, unless there are too many. */
  giveBack(connection: ReceiverConnection): void {
    if (this.#all.size > this.#most) {
      this.drop(connection);
      return;
    }
    const idle = this.#idle.get(connection.origin);
    if (idle === undefined) this.#idle.set(connection.origin, [connection]);
    else idle.push(connection);
  }

  /** Closes a connection that was taken. */
  drop(connection: ReceiverConnection): void {
    if (!this.#all.delete(connection)) return;
    void connection.destroy().catch(() => {});
  }

  async destroy(): Promise<void> {
    this.#idle.clear();
    await Promise.all([...this.#all].map((connection) => connection.destroy().catch(() => {})));
    this.#all.clear();
  }

  /** The receiver or undici has closed a connection. If it is in use, undici connects it again or fails its request. */
  #closed(connection: ReceiverConnection): void {
    const idle = this.#idle.get(connection.origin);
    const at = idle?.indexOf(connection) ?? -1;
    if (idle === undefined || at < 0) return;
    idle.splice(at, 1);
    if (idle.length === 0) this.#idle.delete(connection.origin);
    this.drop(connection);
  }
}
