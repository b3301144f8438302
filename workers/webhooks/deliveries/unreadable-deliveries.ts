import type { Timers } from "../../../core/timers.js";
import { formatTimeUs } from "../../../core/timestamps.js";
import type { Tracked } from "./tracked-delivery.js";

/** Until they are read again for the first time, then twice as long each time that one of them still cannot be read. */
const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 300_000;

export interface UnreadableDeliveriesOptions {
  timers: Timers;
  tick(): number;
  /** It is to be read again. */
  again(tracked: Tracked): void;
  /** `fault` has changed. */
  onChange(): void;
  report(what: string, error: unknown): void;
}

/**
 * Deliveries that are to be made and of which what is stored cannot be read. Nothing is written of them: they stay as they are, are read
 * again from time to time, and go on by the rules once that succeeds.
 */
export class UnreadableDeliveries {
  readonly #options: UnreadableDeliveriesOptions;
  /** Those that are being read again among them. */
  readonly #members = new Set<Tracked>();
  #sinceUs = 0;
  #reason = "";
  #pauseMs = FIRST_PAUSE_MS;
  #timer: unknown = null;

  constructor(options: UnreadableDeliveriesOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#members.size;
  }

  /** For people; null while there is none. */
  get fault(): string | null {
    const { size } = this.#members;
    if (size === 0) return null;
    const deliveries = size === 1 ? "1 delivery waits" : `${size} deliveries wait`;
    return `since ${formatTimeUs(this.#sinceUs)} ${deliveries}: what is stored cannot be read: ${this.#reason}`;
  }

  add(tracked: Tracked, reason: string): void {
    const { timers, tick, report, onChange } = this.#options;
    if (this.#members.size === 0) {
      this.#sinceUs = tick();
      this.#reason = reason;
      report(`what is stored of delivery ${tracked.id} cannot be read: it is tried again`, new Error(reason));
    }
    const isNew = !this.#members.has(tracked);
    this.#members.add(tracked);
    this.#timer ??= timers.set(() => this.#readAgain(), this.#pauseMs);
    if (isNew) onChange();
  }

  /** It has been read, if it was one of them. */
  remove(tracked: Tracked): void {
    if (!this.#members.delete(tracked)) return;
    if (this.#members.size === 0) {
      this.#options.timers.clear(this.#timer);
      this.#timer = null;
      this.#pauseMs = FIRST_PAUSE_MS;
    }
    this.#options.onChange();
  }

  #readAgain(): void {
    this.#timer = null;
    this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS);
    for (const tracked of this.#members) if (tracked.phase === "unreadable") this.#options.again(tracked);
    // Those that are being read already say themselves what comes of it.
  }
}
