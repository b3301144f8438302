import { since } from "../../core/health.js";
import { segmentName } from "../../storage/log/segment.js";
import type { LogLine } from "../recorder/recorder-messages.js";

export interface CompactionFaultsOptions {
  /** Microseconds since the Unix epoch. */
  wallUs(): number;
  /** `text` has changed. */
  onChange(): void;
  line(level: LogLine["level"], message: string, fields: LogLine["fields"]): void;
}

/** Something that does not succeed, for people. */
interface Fault {
  sinceUs: number;
  cause: string;
}

/**
 * What compaction cannot do: anything more, until a restart; a segment, as long as it cannot be read, or until a restart; a pass as a whole.
 * Each is said once in the log when it begins, and once when it is over; `text` is for health meanwhile. Damage is not among it: that is
 * told as all damage that reads meet.
 */
export class CompactionFaults {
  readonly #options: CompactionFaultsOptions;
  #end: string | null = null;
  /** By the segment's base. */
  readonly #unread = new Map<number, Fault>();
  readonly #left = new Map<number, Fault>();
  #pass: Fault | null = null;

  constructor(options: CompactionFaultsOptions) {
    this.#options = options;
  }

  /** Nothing is compacted until a restart. */
  get hasEnded(): boolean {
    return this.#end !== null;
  }

  get text(): string | null {
    if (this.#end !== null) return this.#end;
    const faults = [
      describe(this.#unread, "is not compacted as long as it cannot be read"),
      describe(this.#left, "is not compacted until a restart"),
      this.#pass && since(this.#pass.sinceUs, `compaction cannot go on, and tries again: ${this.#pass.cause}`),
    ].filter((one) => one !== null);
    return faults.length === 0 ? null : faults.join("; ");
  }

  end(what: string, cause: string, fields: LogLine["fields"]): void {
    const { wallUs, line, onChange } = this.#options;
    this.#end = since(wallUs(), `compaction has ended until a restart: ${cause}`);
    line("error", `${what}: compaction has ended until a restart`, { ...fields, cause });
    onChange();
  }

  /** For a reason that may pass. */
  cannotRead(base: number, cause: string): void {
    const { wallUs, line, onChange } = this.#options;
    const before = this.#unread.get(base);
    this.#unread.set(base, { sinceUs: before?.sinceUs ?? wallUs(), cause });
    if (before === undefined) {
      line("warn", "compaction leaves a segment alone as long as it cannot be read", {
        segment: segmentName(base),
        cause,
      });
    }
    onChange();
  }

  /** It can be read now, and is damaged: that is told elsewhere. */
  isDamaged(base: number): void {
    if (this.#unread.delete(base)) this.#options.onChange();
  }

  leaves(base: number, cause: string): void {
    const { wallUs, onChange } = this.#options;
    this.#left.set(base, { sinceUs: wallUs(), cause });
    onChange();
  }

  passFailed(what: string, cause: string, fields: LogLine["fields"]): void {
    const { wallUs, line, onChange } = this.#options;
    if (this.#pass === null) line("warn", `${what}, and it is tried again later`, { ...fields, cause });
    this.#pass = { sinceUs: this.#pass?.sinceUs ?? wallUs(), cause };
    onChange();
  }

  /** A pass came through: what cannot be read has failed in it. */
  passEnded(failed: ReadonlySet<number>): void {
    let hasChanged = this.#pass !== null;
    this.#pass = null;
    for (const base of this.#unread.keys()) {
      if (failed.has(base)) continue;
      this.#unread.delete(base);
      this.#options.line("info", "compaction leaves a segment alone no longer", { segment: segmentName(base) });
      hasChanged = true;
    }
    if (hasChanged) this.#options.onChange();
  }
}

/** The first fault of a kind, with the count of the others. */
function describe(faults: ReadonlyMap<number, Fault>, what: string): string | null {
  const [first] = faults;
  if (first === undefined) return null;
  const [base, { sinceUs, cause }] = first;
  const others = faults.size === 1 ? "" : `, nor are ${faults.size - 1} others`;
  return since(sinceUs, `segment ${segmentName(base)} ${what}: ${cause}${others}`);
}
