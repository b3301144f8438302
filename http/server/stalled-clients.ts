import { type Timers, UNREFERENCED_TIMERS } from "../../core/timers.js";

/** A client that has not read its answer yet. */
export interface WaitingClient {
  /**
   * Tries to send more.
   * @returns a number that changes whenever the client has read something; undefined if that is unknown this time
   */
  offer(): number | undefined;
  /** Ends the connection. */
  cut(): void;
}

/** A clock with timers. */
export interface StallClock extends Timers {
  /** Monotonic. */
  nowMs(): number;
}

export const SYSTEM_STALL_CLOCK: StallClock = {
  // Unreferenced: the connections of the clients keep the process alive.
  ...UNREFERENCED_TIMERS,
  nowMs: () => performance.now(),
};

/** How long a client may read nothing of its answer before it is cut off. */
export const STALL_MS = 60_000;

/** Pause between two tries to send: well below the 8 to 12 s after which uWebSockets.js itself closes the connection. */
export const OFFER_MS = 4_000;

interface Progress {
  figure: number | undefined;
  sinceMs: number;
}

/**
 * Cuts off clients that read nothing of their answers for too long. A client that is seen to read once a minute is never cut off. It checks every 4 s,
 * so a client is cut off 60 to 68 s after it read its last byte.
 */
export class StalledClients {
  readonly #clock: StallClock;
  readonly #prepare: ((waitingMs: number) => Promise<void> | undefined) | undefined;
  readonly #waiting = new Map<WaitingClient, Progress>();
  #timer: unknown;
  #isClosed = false;

  /** @param prepare called before each check, with the longest time that a client has waited */
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

  /** Stops the timer. No client may be added after this. */
  close(): void {
    this.#isClosed = true;
    this.#clock.clear(this.#timer);
    this.#timer = undefined;
  }

  /** The timer ends with the first check that finds no client: clients come and go much faster than it checks. */
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
