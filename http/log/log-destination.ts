/** Lines that wait for a reader that does not keep up, or for room; those beyond are dropped rather than held. */
const WAITING_LIMIT_BYTES = 4 * 1024 * 1024;
/** Of one write: what a pipe holds. */
const PIECE_BYTES = 64 * 1024;
/** Until a write that failed, or that a full pipe did not take, is tried again. */
const RETRY_MS = 100;
/** What the end of the process waits for a pipe's reader that is only slow. */
const LAST_WORDS_MS = 1_000;
const LAST_WORDS_POLL_MS = 10;

/** What never takes anything again: the reader is gone, or there never was a stderr. */
const GONE: ReadonlySet<string> = new Set(["EPIPE", "EBADF"]);

/** Where the lines go. */
export interface LineSink {
  /** Writes what is taken; calls back with how many bytes were, at once or later. */
  write(bytes: Uint8Array, done: (error: NodeJS.ErrnoException | null, written: number) => void): void;
  /** Writes what it takes now, at the end of the process. @throws EAGAIN when it takes nothing now */
  writeNow(bytes: Uint8Array): number;
}

/**
 * The lines of a log on their way to stderr. No answer waits for them, and neither does the end of the process: not for a pipe that nobody
 * reads, and not for a file on a full disk. sonic-boom, which pino brings for this, waits for both without end once the process is to stop.
 */
export class LogDestination {
  readonly #sink: LineSink;
  readonly #droppedLine: (lines: number) => string;
  readonly #onGone: () => void;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** What is being written. */
  #piece: Buffer | undefined;
  #retry: NodeJS.Timeout | undefined;
  #dropped = 0;
  #isGone = false;

  /**
   * @param droppedLine what to write, once there is room, of so many lines that were dropped
   * @param onGone called once a write has found that nobody takes anything any more
   */
  constructor(sink: LineSink, droppedLine: (lines: number) => string, onGone: () => void = () => {}) {
    this.#sink = sink;
    this.#droppedLine = droppedLine;
    this.#onGone = onGone;
  }

  write(line: string): void {
    if (this.#isGone) return;
    const bytes = Buffer.from(line);
    if (this.#waitingBytes + bytes.length > WAITING_LIMIT_BYTES) {
      this.#dropped++;
      return;
    }
    this.#push(bytes);
    if (this.#piece === undefined) this.#next();
  }

  /**
   * At the end of the process: writes what still waits, as far as that is taken now or, by a slow reader, within a second.
   * @returns why not all of it was taken, though somebody may read it; null where it was, or nobody reads
   */
  flushSync(): string | null {
    let cause: string | null = null;
    const deadlineMs = performance.now() + LAST_WORDS_MS;
    // What is being written belongs to the system by now; what failed is tried once more.
    if (this.#retry !== undefined && this.#piece !== undefined) this.#waiting.unshift(this.#piece);
    let rest = Buffer.concat(this.#waiting);
    while (!this.#isGone && rest.length > 0) {
      try {
        rest = rest.subarray(this.#sink.writeNow(rest));
      } catch (error) {
        const { code = "EIO" } = error as NodeJS.ErrnoException;
        if (code !== "EAGAIN" || performance.now() >= deadlineMs) {
          if (!GONE.has(code)) cause = code;
          break;
        }
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LAST_WORDS_POLL_MS);
      }
    }
    clearTimeout(this.#retry);
    this.#isGone = true;
    return cause;
  }

  #push(bytes: Buffer): void {
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
  }

  #next(): void {
    if (this.#dropped > 0 && this.#waitingBytes < WAITING_LIMIT_BYTES / 2) {
      this.#push(Buffer.from(this.#droppedLine(this.#dropped)));
      this.#dropped = 0;
    }
    let bytes = 0;
    let count = 0;
    while (
      count < this.#waiting.length &&
      (count === 0 || bytes + (this.#waiting[count] as Buffer).length <= PIECE_BYTES)
    )
      bytes += (this.#waiting[count++] as Buffer).length;
    if (count === 0) return;
    const first = this.#waiting.splice(0, count);
    this.#give(count === 1 ? (first[0] as Buffer) : Buffer.concat(first, bytes));
  }

  #give(piece: Buffer): void {
    this.#piece = piece;
    this.#sink.write(piece, (error, written) => {
      if (this.#isGone) return;
      if (error !== null && GONE.has(error.code ?? "")) {
        this.#isGone = true;
        this.#waiting = [];
        this.#onGone();
        return;
      }
      if (error === null) {
        this.#waitingBytes -= written;
        if (written < piece.length) this.#give(piece.subarray(written));
        else {
          this.#piece = undefined;
          this.#next();
        }
        return;
      }
      // Of a full disk, or a pipe that nobody reads now: nothing else of the service may depend on it.
      this.#retry = setTimeout(() => {
        this.#retry = undefined;
        this.#give(piece);
      }, RETRY_MS).unref();
    });
  }
}
