import { setImmediate as eventLoopTurn } from "node:timers/promises";
import type { Timers } from "../../../core/timers.js";

/** Timers of one length run out when the test says so; others never do. */
export class ArmedTimers implements Timers {
  readonly #delayMs: number;
  readonly #callbacks: (() => void)[] = [];

  constructor(delayMs: number) {
    this.#delayMs = delayMs;
  }

  get armed(): number {
    return this.#callbacks.length;
  }

  set(callback: () => void, delayMs: number): unknown {
    if (delayMs === this.#delayMs) this.#callbacks.push(callback);
    return callback;
  }

  clear(handle: unknown): void {
    const at = this.#callbacks.indexOf(handle as () => void);
    if (at >= 0) this.#callbacks.splice(at, 1);
  }

  async letOneRunOut(): Promise<void> {
    while (this.#callbacks.length === 0) await eventLoopTurn();
    this.#callbacks.shift()?.();
  }
}
