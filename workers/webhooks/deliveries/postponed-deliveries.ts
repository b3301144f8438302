import type { Timers } from "../../../core/timers.js";
import { formatTimeUs } from "../../../core/timestamps.js";

/** Pause before they are tried again for the first time. It doubles each time that one of them still cannot go on. */
const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 300_000;

export interface PostponedDeliveriesOptions {
  timers: Timers;
  tick(): number;
  /** Tries it again, unless it is being tried already. */
  again(deliveryId: string): void;
  /** Called when `fault` has changed. */
  onChange(): void;
  report(what: string, error: unknown): void;
}

/**
 * Pending deliveries that cannot go on, all for one cause: their stored data cannot be read, or the machine lacks a descriptor or memory. Nothing is
 * written about them: they stay as they are stored, are tried again from time to time, and go on when that works.
 */
export class PostponedDeliveries {
  readonly #cause: string;
  readonly #options: PostponedDeliveriesOptions;
  /** All of them, including those that are being tried again. */
  readonly #ids = new Set<string>();
  #sinceUs = 0;
  #reason = "";
  #pauseMs = FIRST_PAUSE_MS;
  #timer: unknown = null;
  #isStopped = false;

  /** @param cause of all of them, for people */
  constructor(cause: string, options: PostponedDeliveriesOptions) {
    this.#cause = cause;
    this.#options = options;
  }

  get count(): number {
    return this.#ids.size;
  }

  /** Text for people; null while there is none. */
  get fault(): string | null {
    const { size } = this.#ids;
    if (size === 0) return null;
    const deliveries = size === 1 ? "1 delivery waits" : `${size} deliveries wait`;
    return `since ${formatTimeUs(this.#sinceUs)} ${deliveries}, because ${this.#cause}: ${this.#reason}`;
  }

  add(deliveryId: string, reason: string): void {
    const { timers, tick, report, onChange } = this.#options;
    if (this.#ids.size === 0) {
      this.#sinceUs = tick();
      this.#reason = reason;
      report(`delivery ${deliveryId} waits: it is tried again`, new Error(reason));
    }
    const isNew = !this.#ids.has(deliveryId);
    this.#ids.add(deliveryId);
    if (!this.#isStopped) this.#timer ??= timers.set(() => this.#tryAgain(), this.#pauseMs);
    if (isNew) onChange();
  }

  /** Removes a delivery that has been read or attempted, if it is one of them. */
  remove(deliveryId: string): void {
    if (!this.#ids.delete(deliveryId)) return;
    if (this.#ids.size === 0) {
      this.#options.timers.clear(this.#timer);
      this.#timer = null;
      this.#pauseMs = FIRST_PAUSE_MS;
    }
    this.#options.onChange();
  }

  /** None is tried again. */
  stop(): void {
    this.#isStopped = true;
    this.#options.timers.clear(this.#timer);
  }

  #tryAgain(): void {
    this.#timer = null;
    this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS);
    // Those that are being tried already come back here by themselves if that fails.
    for (const deliveryId of this.#ids) this.#options.again(deliveryId);
  }
}
