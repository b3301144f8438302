import { since } from "../../../core/health.js";
import type { Timers } from "../../../core/timers.js";
import { isShortage, shortageOf } from "../../../storage/disk/file-system-error.js";
import type { WriteRoom } from "../../../storage/disk/retried-writes.js";
import type { LogLine } from "../recorder-messages.js";

/** How often waiting operations are tried again: nothing tells when a descriptor becomes free. */
const RETRY_MS = 500;
/** A shortage ends after this many rounds without a failure. With fewer, health would flicker with every client. */
const QUIET_ROUNDS = 6;

export interface ResourceShortageOptions {
  /** Handles operations that find no room on the disk. Once it is stopped, nothing waits here either. */
  room: WriteRoom;
  timers: Timers;
  /** Microseconds since the Unix epoch. */
  wallUs(): number;
  /** Called when `fault` has changed. */
  onChange(): void;
  line(level: LogLine["level"], message: string, fields: LogLine["fields"]): void;
}

/**
 * Repeats operations that failed because the process or the machine had no descriptor or memory left (`isShortage`),
 * until they succeed. They fail before they do anything, so it is safe to repeat them. So a short lack of resources
 * ends neither the log nor a capture.
 */
export class ResourceShortage implements WriteRoom {
  readonly #options: ResourceShortageOptions;
  #shortage: { sinceUs: number; what: string } | null = null;
  #waiting = 0;
  #wake: (() => void)[] = [];
  #quietRounds = 0;
  #timer: unknown = null;
  #isStarted = false;

  constructor(options: ResourceShortageOptions) {
    this.#options = options;
  }

  get isOver(): boolean {
    return this.#options.room.isOver;
  }

  /** True while an operation waits to be tried again. */
  get isWaiting(): boolean {
    return this.#waiting > 0;
  }

  /** Which resource is missing, and since when, for people; null while none is. */
  get fault(): string | null {
    const shortage = this.#shortage;
    if (shortage === null) return null;
    const retry = "the service tries again";
    const now = this.isWaiting ? `work waits, and ${retry} until it succeeds` : retry;
    return since(shortage.sinceUs, `${shortage.what}; ${now}`);
  }

  /** From now on operations wait. Before that a failure is passed on, so that the start fails with it. */
  start(): void {
    this.#isStarted = true;
  }

  /** Makes waiting operations fail. Call it after `room` was stopped. */
  stop(): void {
    this.#options.timers.clear(this.#timer);
    this.#wakeAll();
  }

  async attempt<T>(operation: () => Promise<T>): Promise<T> {
    const { room } = this.#options;
    let isWaiting = false;
    try {
      for (;;) {
        try {
          return await room.attempt(operation);
        } catch (error) {
          if (!isShortage(error) || !this.#isStarted || room.isOver) throw error;
          if (!isWaiting) this.#waiting++;
          isWaiting = true;
          this.note(error);
          await new Promise<void>((resolve) => this.#wake.push(resolve));
          if (room.isOver) throw error;
        }
      }
    } finally {
      if (isWaiting) this.#waiting--;
    }
  }

  /**
   * If the error is a shortage, reports it in health and the log, even if nothing waits here for it.
   *
   * @returns whether it is one
   */
  note(error: unknown): boolean {
    const missing = shortageOf(error);
    if (missing === null) return false;
    this.#quietRounds = 0;
    if (this.#shortage !== null) return true;
    const what = `${missing} (${(error as Error).message})`;
    this.#shortage = { sinceUs: this.#options.wallUs(), what };
    this.#options.line("warn", "the system is short of a resource: what needs it is tried again", { cause: what });
    this.#arm();
    this.#options.onChange();
    return true;
  }

  #arm(): void {
    if (this.isOver) return;
    this.#timer = this.#options.timers.set(() => {
      this.#quietRounds++;
      this.#wakeAll();
      if (this.isWaiting || this.#quietRounds < QUIET_ROUNDS) return this.#arm();
      this.#shortage = null;
      this.#options.line("info", "the system has enough resources again: everything goes on", {});
      this.#options.onChange();
    }, RETRY_MS);
  }

  #wakeAll(): void {
    for (const resolve of this.#wake.splice(0)) resolve();
  }
}
