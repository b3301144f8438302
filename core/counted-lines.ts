import type { Timers } from "./timers.js";

/** Least time between two lines of the same kind and cause. */
const WINDOW_MS = 10_000;

/** Most kinds and causes that are counted apart; further causes share one line for each kind. */
const TOLD_APART = 100;

/** Ten seconds of one kind and cause, after its first line was written. */
interface Window<Line> {
  /** Since the last line. */
  count: number;
  /** The first counted line, which stands for all of them. */
  line: Line | undefined;
  timer: unknown;
}

/**
 * Log lines that anybody can cause from outside. The first line of a kind and cause is written at once. Those that follow within ten seconds are
 * counted, and one line reports their count. So nobody can fill the disk with log lines.
 */
export class CountedLines<Line> {
  readonly #write: (line: Line, count: number | undefined) => void;
  readonly #timers: Timers;
  readonly #windows = new Map<string, Window<Line>>();

  /** @param write writes a line; with a count it stands for as many */
  constructor(timers: Timers, write: (line: Line, count: number | undefined) => void) {
    this.#timers = timers;
    this.#write = write;
  }

  /**
   * @param kind lines of the same kind are counted together; a status, for example
   * @param cause who caused it, as an address or a name
   * @param line called only for a line that may be written; `isToldApart` is false for one that stands for several causes
   */
  write(kind: string, cause: string, line: (isToldApart: boolean) => Line): void {
    const own = `${kind} ${cause}`;
    const isToldApart = this.#windows.has(own) || this.#windows.size < TOLD_APART;
    const key = isToldApart ? own : `${kind} of others`;
    const window = this.#windows.get(key);
    if (window === undefined) {
      this.#begin(key);
      this.#write(line(true), undefined);
      return;
    }
    window.count++;
    window.line ??= line(isToldApart);
  }

  /** Writes the counts so far. */
  flush(): void {
    for (const { count, line, timer } of this.#windows.values()) {
      this.#timers.clear(timer);
      if (line !== undefined) this.#write(line, count);
    }
    this.#windows.clear();
  }

  #begin(key: string): void {
    const timer = this.#timers.set(() => this.#end(key), WINDOW_MS);
    this.#windows.set(key, { count: 0, line: undefined, timer });
  }

  #end(key: string): void {
    const { count, line } = this.#windows.get(key) as Window<Line>;
    this.#windows.delete(key);
    if (line === undefined) return;
    this.#begin(key);
    this.#write(line, count);
  }
}
