import type { Timers } from "../../core/timers.js";

/** One client that an answer waits for. */
export interface WaitingClient {
  /**
   * Offers what waits once more.
   * @returns a figure that changes whenever the client takes something; undefined when it cannot be told this time
   */
  offer(): number | undefined;
  /** Ends the connection. */
  cut(): void;
}

/** Time as this looks at it. */
export interface StallClock extends Timers {
  /** Monotonic. */
  nowMs(): number;
}

export const SYSTEM_STALL_CLOCK: StallClock = {
  // The clients' connections keep the process alive, and nothing else needs to.
  set: (callback, delayMs) => setTimeout(callback, delayMs).unref(),
  clear: (handle) => clearTimeout(handle as NodeJS.Timeout),
  nowMs: () => performance.now(),
};

/** How long a client may take nothing of its answer before it is cut. */
export const STALL_MS = 60_000;

/** Between two offers to a client that does not take its answer: well under the 8 to 12 s that uWebSockets.js itself waits. */
export const OFFER_MS = 4_000;

interface Progress {
  figure: number | undefined;
  sinceMs: number;
}

/**
 * Cuts clients that take nothing of their answers for too long, and only those: one that reads slowly but steadily goes on, however
 * long it takes. It looks every 4 s, so that a client is cut 60 to 68 s after it took its last byte.
 */
export class StalledClients {
  readonly #clock: StallClock;
  readonly #prepare: ((waitingMs: number) => Promise<void> | undefined) | undefined;
  readonly #waiting = new Map<WaitingClient, Progress>();
  #timer: unknown;
  #isClosed = false;

  /** @param prepare called before clients are asked, with the time that the most patient has waited */
  constructor(clock: StallClock = SYSTEM_STALL_CLOCK, prepare?: (waitingMs: number) => Promise<void> | undefined) {
    this.#clock = clock;
    this.#prepare = prepare;
  }

  /** @param figure as `offer` would return it now */
  add(client: WaitingClient, figure: number | undefined): void {
    this.#waiting.set(client, { figure, sinceMs: this.#clock.nowMs() });
    if (this.#timer === undefined) this.#lookLater();
  }

  remove(client: WaitingClient): void {
    this.#waiting.delete(client);
  }

  /** No client comes any more, and those that are left are gone: leaves no timer. */
  close(): void {
    this.#isClosed = true;
    this.#clock.clear(this.#timer);
    this.#timer = undefined;
  }

  /** Ends with the first look that finds nobody: clients come and go much faster than it looks. */
  #lookLater(): void {
    if (this.#isClosed) return;
    this.#timer = this.#clock.set(() => void this.#look(), OFFER_MS);
  }

  async #look(): Promise<void> {
    if (this.#prepare !== undefined) {
      let earliestMs = Number.POSITIVE_INFINITY;
      for (const { sinceMs } of this.#waiting.values()) earliestMs = Math.min(earliestMs, sinceMs);
      await this.#prepare(this.#clock.nowMs() - earliestMs);
    }
    const nowMs = this.#clock.nowMs();
    for (const [client, progress] of this.#waiting) {
      const figure = client.offer();
      if (!this.#waiting.has(client) || figure === undefined) continue;
      if (progress.figure !== undefined && figure !== progress.figure) progress.sinceMs = nowMs;
      progress.figure = figure;
    }
    for (const [client, { sinceMs }] of this.#waiting) {
      if (nowMs - sinceMs < STALL_MS) continue;
      this.remove(client);
      client.cut();
    }
    this.#timer = undefined;
    if (this.#waiting.size > 0) this.#lookLater();
  }
}
