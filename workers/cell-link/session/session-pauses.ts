import type { Socket } from "node:net";

/** Why a connection is not read. */
export type PauseReason =
  | "welcome"
  | "unread answers"
  | "own messages"
  | "all messages"
  | "payload room"
  | "disk room"
  | "token"
  | "service";

/** Pauses a connection's socket while there is a reason to. */
export class SessionPauses {
  readonly #socket: Pick<Socket, "pause" | "resume">;
  readonly #onResume: () => void;
  readonly #reasons = new Set<PauseReason>();
  #isEnded = false;

  /** @param onResume called when the last reason has ended, before the socket is read again */
  constructor(socket: Pick<Socket, "pause" | "resume">, onResume: () => void) {
    this.#socket = socket;
    this.#onResume = onResume;
  }

  get isPaused(): boolean {
    return this.#reasons.size > 0;
  }

  has(reason: PauseReason): boolean {
    return this.#reasons.has(reason);
  }

  pause(reason: PauseReason): void {
    if (this.#isEnded) return;
    this.#reasons.add(reason);
    this.#socket.pause();
  }

  resume(reason: PauseReason): void {
    if (!this.#reasons.delete(reason) || this.isPaused) return;
    this.#onResume();
    this.#socket.resume();
  }

  /** Drops all reasons for good. The socket stays paused or not, as it is. */
  end(): void {
    this.#isEnded = true;
    this.#reasons.clear();
  }
}
