import { isatty } from "node:tty";
import type { CheckProgress } from "../../../storage/repair/check-store.js";
import { writeOnStandardError } from "../../log/standard-error.js";

/** How often progress is shown: on a terminal by rewriting one line, elsewhere as a new line each time. */
const TERMINAL_MS = 200;
const LINES_MS = 10_000;

/** Not `process.stderr`, which ends the process if stderr is a file on a full disk. */
const STANDARD_ERROR = { isTTY: isatty(2), write: writeOnStandardError };

const ERASE_LINE = "\r\u001b[K";

/** Shows the progress of a long check on stderr; stdout is for the findings. */
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

  /** Clears the line on a terminal. */
  end(): void {
    if (this.#isShown && this.#stream.isTTY) this.#stream.write(ERASE_LINE);
  }
}
