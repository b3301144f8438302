import { since } from "../../core/health.js";
import type { Timers } from "../../core/timers.js";
import type { CommittedBatch } from "../../storage/log/log-batch.js";
import { RECORD_HEADER_BYTES } from "../../storage/log/record-format.js";
import type { StorageErrorData } from "../../storage/storage-error.js";
import type { LogLine, SnapshotPolicy } from "../recorder/recorder-messages.js";
import type { SnapshotMade } from "./make-snapshot.js";
import type { SnapshotWork } from "./snapshot-worker.js";

const MIB = 1024 * 1024;

const DEFAULTS = {
  logBytes: 64 * MIB,
  intervalMs: 5 * 60 * 1_000,
  /** Less is read at open before anyone notices. */
  stopLogBytes: MIB,
  stopMs: 5_000,
} as const satisfies Required<SnapshotPolicy>;

/** When another has the turn, or there is no room: nothing presses. */
const RETRY_MS = 10_000;
/** How many times the log that is due there may be before one is made also while others press. */
const BUSY_FACTOR = 4;
/** What a run takes in a snapshot, ids, frame, serial number and all; an estimate, for the first one. */
const BYTES_PER_RUN = 200;

export interface SnapshotScheduleOptions {
  policy: SnapshotPolicy;
  timers: Timers;
  /** Makes everything committed durable; gives its last sequence number. */
  makeDurable(): Promise<number>;
  /** Whether so many bytes more leave room enough on the disk. */
  hasSpare(bytes: number): boolean;
  runCount(): number;
  /** Whether others press for the machine's cores: a snapshot takes one of them for a second or more. */
  isBusy(): boolean;
  make(throughSequence: number): SnapshotWork;
  /** Microseconds since the Unix epoch. */
  wallUs(): number;
  /** Stored bytes are damaged, or the disk does not give them: health tells of it as of what other reads find. */
  onReadDamage(error: StorageErrorData): void;
  /** Health may show something else. */
  onChange(): void;
  line(level: LogLine["level"], message: string, fields: LogLine["fields"]): void;
}

/** What a snapshot holds and takes. */
export interface LastSnapshot {
  /** The last record in it. */
  sequence: number;
  bytes: number;
}

/**
 * Has snapshots made, beside everything else: one when enough of the log, or enough time with changes, lies behind the last one, and one
 * at a clean stop if it is quick. One that is due by the log waits until nothing else presses, for some time. Nothing depends on one: what goes wrong is told by the log and by health, and is tried again when the
 * next is due.
 */
export class SnapshotSchedule {
  readonly #options: SnapshotScheduleOptions;
  readonly #policy: Required<SnapshotPolicy>;
  #last: LastSnapshot | null = null;
  /** Log behind the last one. */
  #logBytes = 0;
  /** Until the next one is due by time, or a delayed one is tried again. */
  #timer: unknown = null;
  /** One was due and could not be made: only the timer begins the next. */
  #isDelayed = false;
  #making: Promise<void> | null = null;
  #work: SnapshotWork | null = null;
  /** The log allows none until an opening has dealt with it. */
  #isOver = false;
  #isStopped = false;
  #isGivenUp = false;
  #fault: { sinceUs: number; what: string } | null = null;

  constructor(options: SnapshotScheduleOptions) {
    this.#options = options;
    this.#policy = { ...DEFAULTS, ...options.policy };
  }

  /**
   * The store is open.
   *
   * @param logBytes what was read of the log: it lies behind the last snapshot
   * @param last that snapshot; null when there is none
   */
  start(logBytes: number, last: LastSnapshot | null): void {
    this.#last = last;
    this.#takeUp(logBytes);
  }

  committed({ bytes }: Pick<CommittedBatch, "bytes">): void {
    this.#takeUp(bytes.length);
  }

  /**
   * A snapshot under way, and one more where much of the log lies behind the last one, have a bounded time to be done.
   * @param isClean false to give up at once: the log has failed
   */
  async stop(isClean: boolean): Promise<void> {
    this.#isStopped = true;
    this.#clearTimer();
    if (!isClean) this.#giveUp();
    const limit = this.#options.timers.set(() => this.#giveUp(), this.#policy.stopMs);
    await this.#making;
    if (!this.#isGivenUp && !this.#isOver && this.#logBytes >= this.#policy.stopLogBytes) await this.#make();
    this.#options.timers.clear(limit);
  }

  /** Why the last one could not be made, and since when none could; null when it was. */
  get fault(): string | null {
    return this.#fault && since(this.#fault.sinceUs, this.#fault.what);
  }

  get #lastBytes(): number {
    return this.#last?.bytes ?? 0;
  }

  #takeUp(bytes: number): void {
    // A mark alone is no change.
    if (bytes > RECORD_HEADER_BYTES) this.#grown(bytes);
  }

  #giveUp(): void {
    this.#isGivenUp = true;
    this.#work?.cancel();
  }

  #grown(bytes: number): void {
    this.#logBytes += bytes;
    if (this.#isStopped || this.#isOver || this.#making !== null || this.#logBytes === 0) return;
    const dueBytes = Math.max(this.#policy.logBytes, this.#lastBytes / 2);
    const isDue = this.#logBytes >= dueBytes && (this.#logBytes >= BUSY_FACTOR * dueBytes || !this.#options.isBusy());
    if (isDue && !this.#isDelayed) this.#begin();
    else if (this.#timer === null) this.#arm(this.#policy.intervalMs);
  }

  #arm(delayMs: number): void {
    this.#timer = this.#options.timers.set(() => {
      this.#timer = null;
      this.#begin();
    }, delayMs);
  }

  #clearTimer(): void {
    if (this.#timer !== null) this.#options.timers.clear(this.#timer);
    this.#timer = null;
  }

  #begin(): void {
    this.#clearTimer();
    this.#isDelayed = false;
    this.#making = this.#make().then((retryMs) => {
      this.#making = null;
      if (this.#isStopped || this.#isOver) return;
      if (retryMs === null) {
        this.#grown(0);
      } else {
        this.#isDelayed = true;
        this.#arm(retryMs);
      }
    });
  }

  /** Never rejects. Gives after how long to try again; null when it was made. */
  async #make(): Promise<number | null> {
    const { line, makeDurable, hasSpare, runCount, make } = this.#options;
    const startedMs = performance.now();
    try {
      if (!hasSpare(Math.max(this.#lastBytes, runCount() * BYTES_PER_RUN))) return RETRY_MS;
      // What comes in while this waits lies behind the snapshot.
      const logBytes = this.#logBytes;
      const sequence = await makeDurable();
      if (this.#isGivenUp) return null;
      // All that came in since the last one was begun is in it.
      if (sequence === this.#last?.sequence) {
        this.#logBytes -= logBytes;
        return null;
      }
      this.#work = make(sequence);
      const outcome = await this.#work.outcome;
      for (const damage of outcome.damages ?? []) this.#options.onReadDamage(damage);
      if ("made" in outcome) {
        this.#setFault(null);
        this.#logBytes -= logBytes;
        this.#last = outcome.made;
        line("info", "made a snapshot", { ...fieldsOf(outcome.made), duration_ms: elapsedMs(startedMs) });
        return null;
      }
      if (this.#isGivenUp) {
        line("info", "gave up a snapshot: the service stops", { duration_ms: elapsedMs(startedMs) });
      } else if ("refused" in outcome) {
        this.#isOver = true;
        line("warn", "no snapshot is made until the next start", { cause: outcome.refused });
        this.#setFault(`no snapshot is made until the next start: ${outcome.refused}`);
      } else {
        line("warn", "a snapshot could not be made", { cause: outcome.failed, duration_ms: elapsedMs(startedMs) });
        this.#setFault(triedAgain(outcome.failed));
      }
    } catch (error) {
      const cause = error instanceof Error ? error.message : String(error);
      line("warn", "a snapshot could not be made", { cause });
      this.#setFault(triedAgain(cause));
    } finally {
      this.#work = null;
    }
    return this.#policy.intervalMs;
  }

  #setFault(what: string | null): void {
    this.#fault = what === null ? null : { sinceUs: this.#fault?.sinceUs ?? this.#options.wallUs(), what };
    this.#options.onChange();
  }
}

function triedAgain(cause: string): string {
  return `no snapshot could be made, and it is tried again: ${cause}`;
}

function fieldsOf({ sequence, fromSequence, runs, bytes }: SnapshotMade): LogLine["fields"] {
  return { sequence, from_sequence: fromSequence, runs, bytes };
}

function elapsedMs(startedMs: number): number {
  return Math.round(performance.now() - startedMs);
}
