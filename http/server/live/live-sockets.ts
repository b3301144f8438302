import { LIMITS } from "../../../core/limits.js";
import { SYSTEM_TIMERS, type Timers } from "../../../core/timers.js";
import type { LiveSocket, MessagePart, Reply } from "../../replies/reply.js";

/** A WebSocket, independent of the library. */
export interface NativeSocket {
  /** Sends a part as a frame. Resolves when the client has taken it, or is gone. */
  send(part: MessagePart): Promise<void>;
  ping(): void;
  /** Sends a close frame. Nothing more is sent after it. */
  close(code: number, reason: string): void;
  /** Ends the connection without a word. */
  drop(): void;
}

/** Takes note of an error while a message was made. Returns what a GET would have answered. */
export type OnFailure = (error: unknown) => Reply;

/** How a connection is closed after a message above `LIMITS.liveMessageBytes`. */
export const TOO_LARGE = { code: 1009, reason: `messages may have at most ${LIMITS.liveMessageBytes} bytes` } as const;

const PING_MS = 30_000;
/** How long a client may take to answer a close frame. */
const CLOSE_MS = 1_000;

/** The open WebSockets of a server. */
export class LiveSockets {
  readonly #timers: Timers;
  readonly #sockets = new Set<OpenSocket>();
  #timer: unknown;

  /** @param timers of pings */
  constructor(timers: Timers = SYSTEM_TIMERS) {
    this.#timers = timers;
  }

  get size(): number {
    return this.#sockets.size;
  }

  /** Sends what `live` gives. The server calls `pong` and `gone` of the result. */
  open(native: NativeSocket, live: LiveSocket, onFailure: OnFailure): OpenSocket {
    const socket = new OpenSocket(native, live, onFailure, () => this.#remove(socket));
    this.#sockets.add(socket);
    if (this.#timer === undefined) this.#pingLater();
    void socket.run();
    return socket;
  }

  dropAll(): void {
    for (const socket of [...this.#sockets]) socket.drop();
  }

  #pingLater(): void {
    this.#timer = this.#timers.set(() => {
      this.#pingLater();
      // It may drop the last one.
      for (const socket of [...this.#sockets]) socket.ping();
    }, PING_MS);
  }

  #remove(socket: OpenSocket): void {
    this.#sockets.delete(socket);
    if (this.#sockets.size > 0) return;
    this.#timers.clear(this.#timer);
    this.#timer = undefined;
  }
}

export class OpenSocket {
  readonly #native: NativeSocket;
  readonly #live: LiveSocket;
  readonly #onFailure: OnFailure;
  readonly #remove: () => void;
  #isAnswered = true;
  #isSending = false;
  /** How many parts were given to the connection; at the last ping, if one waited for room then. */
  #parts = 0;
  #waitedPart = 0;
  #isClosing = false;
  #isGone = false;
  #closeTimer: NodeJS.Timeout | undefined;

  constructor(native: NativeSocket, live: LiveSocket, onFailure: OnFailure, remove: () => void) {
    this.#native = native;
    this.#live = live;
    this.#onFailure = onFailure;
    this.#remove = remove;
  }

  async run(): Promise<void> {
    const live = this.#live;
    // A client that takes nothing must not hold up a stop.
    const onCut = () => this.close(live.ending.code, live.ending.reason);
    live.cut.addEventListener("abort", onCut, { once: true });
    try {
      for (let part = await live.next(); part !== undefined && !this.#isClosing; part = await live.next()) {
        this.#parts++;
        this.#isSending = true;
        await this.#native.send(part);
        this.#isSending = false;
      }
      this.close(live.ending.code, live.ending.reason);
    } catch (error) {
      // A read for a client that has left may fail for that reason.
      if (this.#isClosing) return;
      if (this.#onFailure(error).status === 503) this.close(1013, "the service cannot read the run now");
      else this.close(1011, "the service failed to read the run");
    } finally {
      live.cut.removeEventListener("abort", onCut);
    }
  }

  ping(): void {
    if (this.#isClosing) return;
    // A slow client comes to a ping only after what was sent before it, so while it takes parts it need not answer.
    const isStuck = this.#isSending ? this.#waitedPart === this.#parts : !this.#isAnswered;
    if (isStuck) {
      this.drop();
      return;
    }
    if (this.#isSending) {
      this.#waitedPart = this.#parts;
      this.#isAnswered = true;
      return;
    }
    this.#isAnswered = false;
    this.#native.ping();
  }

  pong(): void {
    this.#isAnswered = true;
  }

  close(code: number, reason: string): void {
    if (this.#isClosing || this.#isGone) return;
    this.#isClosing = true;
    this.#live.release();
    this.#closeTimer = setTimeout(() => this.drop(), CLOSE_MS);
    this.#native.close(code, reason);
  }

  drop(): void {
    if (!this.#isGone) this.#native.drop();
  }

  /** The connection is closed. */
  gone(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#isClosing = true;
    clearTimeout(this.#closeTimer);
    this.#live.release();
    this.#remove();
  }
}
