/** Limit of the lines that wait for a slow reader or for disk space; further lines are dropped. */
const WAITING_LIMIT_BYTES = 4 * 1024 * 1024;
/** Size of one write: as much as a pipe holds. */
const CHUNK_BYTES = 64 * 1024;
/** Pause before a failed write, or one to a full pipe, is tried again. */
const RETRY_MS = 100;
/** How long the end of the process waits for a slow reader of a pipe. */
const LAST_WORDS_MS = 1_000;
const LAST_WORDS_POLL_MS = 10;

/** Errors after which nothing can ever be written: the reader has gone, or there is no stderr. */
const GONE: ReadonlySet<string> = new Set(["EPIPE", "EBADF"]);

/** Where the lines go. */
export interface LineSink {
  /** Writes as much as is accepted; calls back, at once or later, with the number of bytes written. */
  write(bytes: Uint8Array, done: (error: NodeJS.ErrnoException | null, written: number) => void): void;
  /** Writes at the end of the process. @returns the number of bytes written @throws EAGAIN if nothing is accepted now */
  writeNow(bytes: Uint8Array): number;
}

/**
 * Writes the lines of a log. Neither answers nor the end of the process wait for it, even if nobody reads the pipe or the disk is full.
 * sonic-boom, pino's own destination, waits for both without limit when the process stops.
 */
export class LogDestination {
  readonly #sink: LineSink;
  readonly #droppedLine: (lines: number) => string;
  readonly #onGone: () => void;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** The bytes that are being written. */
  #chunk: Buffer | undefined;
  #retry: NodeJS.Timeout | undefined;
  #dropped = 0;
  #isGone = false;

  /**
   * @param droppedLine makes the line that reports dropped lines, once there is room for it
   * @param onGone called once, when a write has found that the reader has gone
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
    if (this.#chunk === undefined) this.#next();
  }

  /**
   * Writes the waiting lines at the end of the process, for at most a second if the reader is slow.
   * @returns the error code if not everything could be written; null if it was, or if the reader has gone
   */
  flushSync(): string | null {
    let cause: string | null = null;
    const deadlineMs = performance.now() + LAST_WORDS_MS;
    // A running write belongs to the system already. A failed one is tried once more.
    if (this.#retry !== undefined && this.#chunk !== undefined) this.#waiting.unshift(this.#chunk);
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
      (count === 0 || bytes + (this.#waiting[count] as Buffer).length <= CHUNK_BYTES)
    )
      bytes += (this.#waiting[count++] as Buffer).length;
    if (count === 0) return;
    const first = this.#waiting.splice(0, count);
    this.#give(count === 1 ? (first[0] as Buffer) : Buffer.concat(first, bytes));
  }

  #give(chunk: Buffer): void {
    this.#chunk = chunk;
    this.#sink.write(chunk, (error, written) => {
      if (this.#isGone) return;
      if (error !== null && GONE.has(error.code ?? "")) {
        this.#isGone = true;
        this.#waiting = [];
        this.#onGone();
        return;
      }
      if (error === null) {
        this.#waitingBytes -= written;
        if (written < chunk.length) this.#give(chunk.subarray(written));
        else {
          this.#chunk = undefined;
          this.#next();
        }
        return;
      }
      // A full disk, or a pipe that nobody reads at the moment: the rest of the service must not depend on it.
      this.#retry = setTimeout(() => {
        this.#retry = undefined;
        this.#give(chunk);
      }, RETRY_MS).unref();
    });
  }
}
