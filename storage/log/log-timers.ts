import { type Timers, UNREFERENCED_TIMERS } from "../../core/timers.js";
import type { LogOptions } from "./log-options.js";

const DEFAULT_INTERVAL_MS = 100;
/** Short enough that the last records are soon proven, and long enough to cost nothing while records come. */
const DEFAULT_IDLE_MARK_MS = 250;

/** The two timers of a log: for the next sync in mode `interval`, and for the mark after a while without records. */
export class LogTimers {
  readonly #timers: Timers;
  readonly #intervalMs: number;
  readonly #idleMarkMs: number;
  #interval: unknown = null;
  #idle: unknown = null;

  constructor({ timers, intervalMs, idleMarkMs }: Pick<LogOptions, "timers" | "intervalMs" | "idleMarkMs">) {
    this.#timers = timers ?? UNREFERENCED_TIMERS;
    this.#intervalMs = intervalMs ?? DEFAULT_INTERVAL_MS;
    this.#idleMarkMs = idleMarkMs ?? DEFAULT_IDLE_MARK_MS;
  }

  /** Does nothing while the timer is armed. */
  armInterval(onTime: () => void): void {
    this.#interval ??= this.#timers.set(() => {
      this.#interval = null;
      onTime();
    }, this.#intervalMs);
  }

  /** Does nothing while the timer is armed. */
  armIdle(onTime: () => void): void {
    this.#idle ??= this.#timers.set(() => {
      this.#idle = null;
      onTime();
    }, this.#idleMarkMs);
  }

  clear(): void {
    if (this.#interval !== null) this.#timers.clear(this.#interval);
    if (this.#idle !== null) this.#timers.clear(this.#idle);
    this.#interval = null;
    this.#idle = null;
  }
}
