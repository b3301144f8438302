import { since } from "../../../core/health.js";
import type { Timers } from "../../../core/timers.js";
import { isShortage, shortageOf } from "../../../storage/disk/file-system.js";
import type { WriteRoom } from "../../../storage/disk/write-room.js";
import type { LogLine } from "../recorder-messages.js";

/** Nothing tells when a descriptor becomes free: what waits is tried again so often. */
const RETRY_MS = 500;
/** So many rounds without a failure end a shortage: with fewer, health would come and go with every client. */
const QUIET_ROUNDS = 6;

export interface ResourceShortageOptions {
  /** What becomes of operations that find no room on the disk. When it is over, nothing waits here either. */
  room: WriteRoom;
  timers: Timers;
  /** Microseconds since the Unix epoch. */
  wallUs(): number;
  /** `fault` has changed. */
  onChange(): void;
  line(level: LogLine["level"], message: string, fields: LogLine["fields"]): void;
}

/**
 * Has operations wait that failed because the process, or the machine, had no descriptor or memory left (`isShortage`). They fail before they
 * do anything, so they are repeated until they succeed, and no such moment ends the log or a capture.
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

  /** Something that was taken waits. */
  get isWaiting(): boolean {
    return this.#waiting > 0;
  }

  /** What is missing, and since when, for people; null while nothing is. */
  get fault(): string | null {
    const shortage = this.#shortage;
    if (shortage === null) return null;
    const waits = this.isWaiting ? "what was taken waits, and is tried again until it succeeds" : "tried again";
    return since(shortage.sinceUs, `${shortage.what}; ${waits}`);
  }

  /** From now on operations wait. Before, a failure is passed on: whoever starts the service is told. */
  start(): void {
    this.#isStarted = true;
  }

  /** Once the room is over: what waits fails. */
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

  /** Health and the log tell of the error if it is of a shortage, also of one for which nothing waits here. True if it is. */
  note(error: unknown): boolean {
    const missing = shortageOf(error);
    if (missing === null) return false;
    this.#quietRounds = 0;
    if (this.#shortage !== null) return true;
    const what = `${missing} (${(error as Error).message})`;
    this.#shortage = { sinceUs: this.#options.wallUs(), what };
    this.#options.line("warn", "the service waits for what the system has too little of", { cause: what });
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
      this.#options.line("info", "the system has enough again: everything goes on", {});
      this.#options.onChange();
    }, RETRY_MS);
  }

  #wakeAll(): void {
    for (const resolve of this.#wake.splice(0)) resolve();
  }
}
