import { EventEmitter } from "node:events";
import type { Socket } from "node:net";

/**
 * One end of a connection within the process, with what the cell link uses of a socket. What is written arrives in the next turn of the
 * event loop, so that the same program has the same order of things every time.
 */
export class MemorySocket extends EventEmitter {
  /** Sees what is written at this end, as it is written. */
  onWrite: (bytes: Uint8Array) => void = () => {};
  readonly writableLength = 0;
  #peer!: MemorySocket;
  #arrived: Uint8Array[] = [];
  #isPaused = false;
  #hasEnded = false;
  #hasSeenEnd = false;
  #isClosed = false;
  #isScheduled = false;

  static pair(): [MemorySocket, MemorySocket] {
    const [one, other] = [new MemorySocket(), new MemorySocket()];
    one.#peer = other;
    other.#peer = one;
    return [one, other];
  }

  asSocket(): Socket {
    return this as unknown as Socket;
  }

  write(bytes: Uint8Array): boolean {
    if (this.#hasEnded || this.#isClosed) return false;
    this.onWrite(bytes);
    this.#peer.#arrived.push(bytes);
    this.#peer.#schedule();
    return true;
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#peer.#schedule();
    this.#schedule();
  }

  destroy(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#arrived = [];
    this.end();
    setImmediate(() => this.emit("close"));
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isClosed) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#deliver();
    });
  }

  #deliver(): void {
    while (!this.#isPaused && !this.#isClosed) {
      const bytes = this.#arrived.shift();
      if (bytes === undefined) break;
      this.emit("data", bytes);
    }
    if (this.#arrived.length > 0 || this.#isPaused || this.#isClosed || !this.#peer.#hasEnded) return;
    if (!this.#hasSeenEnd) {
      this.#hasSeenEnd = true;
      this.emit("end");
    }
    if (this.#hasEnded) this.destroy();
  }
}
