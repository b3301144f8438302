import { formatTimeUs } from "../../../core/timestamps.js";
import type { KeptFile } from "../../../storage/captures/capture-store.js";
import { withRelativePaths } from "../../../storage/relative-paths.js";
import type { LogLine } from "../recorder-messages.js";

const DAY_US = 86_400_000_000;

export interface RetentionFaultsOptions {
  /** Left out of what is said for people: paths are told relative to it. */
  dataDirectory: string;
  /** Microseconds since the Unix epoch. */
  wallUs(): number;
  line(level: LogLine["level"], message: string, fields: LogLine["fields"]): void;
}

/** Something that does not succeed, for people. */
interface Fault {
  sinceUs: number;
  cause: string;
}

/**
 * What retention cannot do for now, in four kinds: files that cannot be unlinked, runs whose record cannot be read, captures that only a
 * clock in doubt makes old, and a pass that failed as a whole. Each is said once in the log when it begins and once when it is over; `text` is for health meanwhile.
 */
export class RetentionFaults {
  readonly #options: RetentionFaultsOptions;
  /** By run id. */
  readonly #kept = new Map<string, Fault>();
  /** By the run's creation. */
  readonly #unreadable = new Map<number, Fault>();
  /** Of those, what has not failed anew since the retry under way began. */
  readonly #retried = new Set<number>();
  #failedPass: Fault | null = null;
  #clockInDoubt: Fault | null = null;

  constructor(options: RetentionFaultsOptions) {
    this.#options = options;
  }

  /** Runs whose captures have a tombstone and could not be unlinked. */
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
        (count) => `captures of ${count} run${count === 1 ? "" : "s"} stay, whose record cannot be read`,
      ),
      this.#failedPass &&
        `since ${isoTime(this.#failedPass.sinceUs)}: retention could not go on: ${this.#failedPass.cause}`,
      this.#clockInDoubt && `since ${isoTime(this.#clockInDoubt.sinceUs)}: ${this.#clockInDoubt.cause}`,
    ].filter((one) => one !== null);
    if (faults.length === 0) return null;
    return withRelativePaths(`${faults.join("; ")}; tried again once a minute`, this.#options.dataDirectory);
  }

  /** All of these files were to be removed, and these could not be. */
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
        line("info", "a removed capture could be unlinked after all", { run_id: runId });
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
    line("error", "retention leaves a run alone whose record cannot be read", {
      created_at: formatTimeUs(createdAtUs),
      cause,
    });
  }

  /** The machine's clock is ahead so far that captures it makes old stay; null: none is held back by that. */
  clockInDoubt(leadUs: number | null): void {
    const { wallUs, line } = this.#options;
    const before = this.#clockInDoubt;
    if (leadUs === null) {
      this.#clockInDoubt = null;
      if (before !== null) line("info", "retention goes by the machine's clock again", {});
      return;
    }
    const cause =
      `the machine's clock is ${Math.floor(leadUs / DAY_US)} days ahead of the last run with captures: those that are old by it stay ` +
      "until it has gone so for a day; if it is wrong, put it right";
    this.#clockInDoubt = { sinceUs: before?.sinceUs ?? wallUs(), cause };
    if (before === null) line("warn", "retention by age waits", { cause });
  }

  /** From here on all that could not be read is due again. */
  beginRetry(): void {
    for (const createdAtUs of this.#unreadable.keys()) this.#retried.add(createdAtUs);
  }

  passFailed(error: unknown): void {
    const cause = causeOf(error);
    this.#retried.clear();
    this.#failedPass = { sinceUs: this.#failedPass?.sinceUs ?? this.#options.wallUs(), cause };
    this.#options.line("error", "retention could not go on and tries again later", { cause });
  }

  /**
   * A pass came through. What was due again and did not fail anew, since it could be read or is not to be removed any more, is no fault;
   * where it did not come as far as that, it is due once more.
   */
  passEnded(hasReadAll: boolean): void {
    this.#failedPass = null;
    if (hasReadAll) for (const createdAtUs of this.#retried) this.#unreadable.delete(createdAtUs);
    this.#retried.clear();
  }
}

/** The first fault of a kind, with the count of all. */
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
