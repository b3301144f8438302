import type { Timers } from "../../../core/timers.js";

interface Timer {
  callback: () => void;
  delayMs: number;
  dueMs: number;
}

/** Timers that run when the test says so: nothing waits for the clock. */
export class ManualTimers implements Timers {
  #nowMs = 0;
  readonly #timers = new Set<Timer>();

  nowMs(): number {
    return this.#nowMs;
  }

  get armed(): number {
    return this.#timers.size;
  }

  /** How many timers are set with this delay. */
  armedFor(delayMs: number): number {
    return [...this.#timers].filter((timer) => timer.delayMs === delayMs).length;
  }

  set(callback: () => void, delayMs: number): unknown {
    const timer = { callback, delayMs, dueMs: this.#nowMs + delayMs };
    this.#timers.add(timer);
    return timer;
  }

  clear(handle: unknown): void {
    this.#timers.delete(handle as Timer);
  }

  /** Lets time pass: every timer runs at its due time, in order. */
  advance(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (;;) {
      let next: Timer | undefined;
      for (const timer of this.#timers) {
        if (timer.dueMs <= endMs && (next === undefined || timer.dueMs < next.dueMs)) next = timer;
      }
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.callback();
    }
    this.#nowMs = endMs;
  }
}
