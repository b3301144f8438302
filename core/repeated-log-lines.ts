import type { Timers } from "./timers.js";

/** Least time between two lines of the same kind and cause. */
const WINDOW_MS = 10_000;

/** Most causes of a kind that are counted apart; further ones share one line. */
const TOLD_APART = 100;

/** Key of the window that further causes share. */
const OTHERS = null;

/** Ten seconds of one kind and cause, after its first line was written. */
interface Window<Line> {
  /** Since the last line. */
  count: number;
  /** The first counted line, which represents all of them. */
  line: Line | undefined;
  timer: unknown;
}

/**
 * Log lines that anybody can cause from outside. The first line of a kind and cause is written at once. Those that follow within ten seconds are
 * counted, and one line reports their count. So nobody can fill the disk with log lines.
 */
export class RepeatedLogLines<Line> {
  readonly #write: (line: Line, count: number | undefined) => void;
  readonly #timers: Timers;
  /** For each kind, its windows by cause. The code knows few kinds. */
  readonly #kinds = new Map<string, Map<string | null, Window<Line>>>();

  /** @param write writes a line; with a count the line represents so many */
  constructor(timers: Timers, write: (line: Line, count: number | undefined) => void) {
    this.#timers = timers;
    this.#write = write;
  }

  /**
   * @param kind lines of the same kind are counted together; a status, for example
   * @param cause who caused it, as an address or a name
   * @param line called only for a line that may be written; `isToldApart` is false for one that represents several causes
   */
  write(kind: string, cause: string, line: (isToldApart: boolean) => Line): void {
    const windows = this.#kinds.get(kind) ?? new Map<string | null, Window<Line>>();
    this.#kinds.set(kind, windows);
    const isToldApart = windows.has(cause) || windows.size < TOLD_APART;
    const key = isToldApart ? cause : OTHERS;
    const window = windows.get(key);
    if (window === undefined) {
      this.#begin(windows, key);
      this.#write(line(true), undefined);
      return;
    }
    window.count++;
    window.line ??= line(isToldApart);
  }

  /** Writes the counts so far. */
  flush(): void {
    for (const windows of this.#kinds.values()) {
      for (const { count, line, timer } of windows.values()) {
        this.#timers.clear(timer);
        if (line !== undefined) this.#write(line, count);
      }
    }
    this.#kinds.clear();
  }

  #begin(windows: Map<string | null, Window<Line>>, key: string | null): void {
    const timer = this.#timers.set(() => this.#end(windows, key), WINDOW_MS);
    windows.set(key, { count: 0, line: undefined, timer });
  }

  #end(windows: Map<string | null, Window<Line>>, key: string | null): void {
    const { count, line } = windows.get(key) as Window<Line>;
    windows.delete(key);
    if (line === undefined) return;
    this.#begin(windows, key);
    this.#write(line, count);
  }
}
