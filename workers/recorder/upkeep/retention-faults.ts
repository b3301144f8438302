import { formatTimeUs } from "../../../core/timestamps.js";
import type { KeptFile } from "../../../storage/captures/capture-store.js";
import { withRelativePaths } from "../../../storage/relative-paths.js";
import type { LogLine } from "../recorder-messages.js";

const DAY_US = 86_400_000_000;

export interface RetentionFaultsOptions {
  /** Messages give paths relative to this one. */
  dataDirectory: string;
  /** Microseconds since the Unix epoch. */
  wallUs(): number;
  line(level: LogLine["level"], message: string, fields: LogLine["fields"]): void;
}

/** What fails, and since when, as text for people. */
interface Fault {
  sinceUs: number;
  cause: string;
}

/**
 * What retention cannot do at present. Each fault is logged when it begins and when it is over. `text` shows all of
 * them in health. There are four kinds:
 *
 * - Files cannot be unlinked.
 * - The record of a run cannot be read.
 * - Captures look old only because of a clock that may be wrong.
 * - A pass failed as a whole.
 */
export class RetentionFaults {
  readonly #options: RetentionFaultsOptions;
  /** Files that cannot be unlinked, by run id. */
  readonly #kept = new Map<string, Fault>();
  /** Runs whose record cannot be read, by creation time. */
  readonly #unreadable = new Map<number, Fault>();
  /** Runs of `#unreadable` that have not failed again since the present retry began. */
  readonly #retried = new Set<number>();
  #failedPass: Fault | null = null;
  #clockInDoubt: Fault | null = null;

  constructor(options: RetentionFaultsOptions) {
    this.#options = options;
  }

  /** Runs whose captures have a tombstone but could not be unlinked. */
  get keptRunIds(): readonly string[] {
    return [...this.#kept.keys()];
  }

  get text(): string | null {
    const faults = [
      describe(
        this.#kept,
        (count) => `${count === 1 ? "a removed capture" : `${count} removed captures`} cannot be unlinked`,
      ),
      describe(
        this.#unreadable,
        (count) => `captures of ${count} run${count === 1 ? "" : "s"} stay, because the run's record cannot be read`,
      ),
      this.#failedPass &&
        `since ${isoTime(this.#failedPass.sinceUs)}: retention could not go on: ${this.#failedPass.cause}`,
      this.#clockInDoubt && `since ${isoTime(this.#clockInDoubt.sinceUs)}: ${this.#clockInDoubt.cause}`,
    ].filter((one) => one !== null);
    if (faults.length === 0) return null;
    return withRelativePaths(`${faults.join("; ")}; tried again once a minute`, this.#options.dataDirectory);
  }

  /** Retention has tried to unlink the files of `runIds`. It could not unlink those in `kept`. */
  unlinked(runIds: readonly string[], kept: readonly KeptFile[]): void {
    const { wallUs, line } = this.#options;
    const stay = new Map(kept.map(({ runId, error }) => [runId, error]));
    for (const runId of runIds) {
      const error = stay.get(runId);
      const before = this.#kept.get(runId);
      if (error !== undefined) {
        this.#kept.set(runId, { sinceUs: before?.sinceUs ?? wallUs(), cause: causeOf(error) });
        if (before === undefined) {
          line("error", "a removed capture cannot be unlinked", { run_id: runId, cause: error.message });
        }
      } else if (before !== undefined) {
        this.#kept.delete(runId);
        line("info", "a removed capture was unlinked after all", { run_id: runId });
      }
    }
  }

  cannotRead(createdAtUs: number, error: unknown): void {
    const { wallUs, line } = this.#options;
    const before = this.#unreadable.get(createdAtUs);
    const cause = causeOf(error);
    this.#retried.delete(createdAtUs);
    this.#unreadable.set(createdAtUs, { sinceUs: before?.sinceUs ?? wallUs(), cause });
    if (before !== undefined) return;
    line("error", "retention skips a run, because its record cannot be read", {
      created_at: formatTimeUs(createdAtUs),
      cause,
    });
  }

  /** Notes how far the machine's clock is ahead, if too far to trust: captures that are old only by this clock are kept. Null: it is trusted. */
  clockInDoubt(leadUs: number | null): void {
    const { wallUs, line } = this.#options;
    const before = this.#clockInDoubt;
    if (leadUs === null) {
      this.#clockInDoubt = null;
      if (before !== null) line("info", "retention goes by the machine's clock again", {});
      return;
    }
    const cause =
      `the machine's clock is ${Math.floor(leadUs / DAY_US)} days ahead of the last run with captures: ` +
      "captures that are old only by this clock are kept for a day, and then removed; correct the clock before that if it is wrong";
    this.#clockInDoubt = { sinceUs: before?.sinceUs ?? wallUs(), cause };
    if (before === null) line("warn", "retention by age waits", { cause });
  }

  /** A retry begins. Every run whose record could not be read is tried again. */
  beginRetry(): void {
    for (const createdAtUs of this.#unreadable.keys()) this.#retried.add(createdAtUs);
  }

  passFailed(error: unknown): void {
    const cause = causeOf(error);
    this.#retried.clear();
    this.#failedPass = { sinceUs: this.#failedPass?.sinceUs ?? this.#options.wallUs(), cause };
    this.#options.line("error", "retention could not go on: it tries again later", { cause });
  }

  /**
   * A pass has ended without an error. A run that was tried again and did not fail is no longer a fault: its record was
   * read, or need not be.
   *
   * @param hasReadAll false: the pass ended before it tried all of these runs, so all of them stay faults
   */
  passEnded(hasReadAll: boolean): void {
    this.#failedPass = null;
    if (hasReadAll) for (const createdAtUs of this.#retried) this.#unreadable.delete(createdAtUs);
    this.#retried.clear();
  }
}

/** The first fault of a kind, with the number of faults of this kind. */
function describe(faults: ReadonlyMap<unknown, Fault>, what: (count: number) => string): string | null {
  const [first] = faults.values();
  if (first === undefined) return null;
  return `since ${isoTime(first.sinceUs)}: ${what(faults.size)} (${first.cause}${faults.size > 1 ? ", and others" : ""})`;
}

function causeOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function isoTime(timeUs: number): string {
  return new Date(timeUs / 1_000).toISOString();
}
