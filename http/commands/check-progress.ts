import { isatty } from "node:tty";
import type { CheckProgress } from "../../storage/repair/check-store.js";
import { writeOnStandardError } from "../log/standard-error.js";

/** On a terminal the line is written anew so often; elsewhere a line of its own comes so often, the first one after as long. */
const TERMINAL_MS = 200;
const LINES_MS = 10_000;

/** Not `process.stderr`: where its disk is full, that ends the process. */
const STANDARD_ERROR = { isTTY: isatty(2), write: writeOnStandardError };

const ERASE_LINE = "\r\u001b[K";

/** Tells on stderr how far a long check has come, so that stdout keeps what was found. */
export class CheckProgressLine {
  readonly #stream: { isTTY?: boolean; write(text: string): unknown };
  readonly #nowMs: () => number;
  readonly #intervalMs: number;
  #lastMs: number;
  #isShown = false;

  constructor(
    stream: { isTTY?: boolean; write(text: string): unknown } = STANDARD_ERROR,
    nowMs = () => performance.now(),
  ) {
    this.#stream = stream;
    this.#nowMs = nowMs;
    this.#intervalMs = stream.isTTY ? TERMINAL_MS : LINES_MS;
    this.#lastMs = nowMs();
  }

  update({ bytes, totalBytes, records }: CheckProgress): void {
    const nowMs = this.#nowMs();
    if (nowMs - this.#lastMs < this.#intervalMs) return;
    this.#lastMs = nowMs;
    const share = totalBytes === 0 ? 100 : Math.min(100, Math.floor((100 * bytes) / totalBytes));
    const text = `checked ${bytes} of ${totalBytes} bytes (${share}%), ${records} records`;
    this.#stream.write(this.#stream.isTTY ? `${ERASE_LINE}${text}` : `${text}\n`);
    this.#isShown = true;
  }

  /** Clears the line, for what follows. */
  end(): void {
    if (this.#isShown && this.#stream.isTTY) this.#stream.write(ERASE_LINE);
  }
}
