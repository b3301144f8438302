import { isatty } from "node:tty";
import type { CheckProgress } from "../../../storage/repair/check-store.js";
import { writeOnStandardError } from "../../log/standard-error.js";

/** How often the line is written anew. */
const INTERVAL_MS = 200;

/** Not `process.stderr`, which ends the process if stderr is a file on a full disk. */
const STANDARD_ERROR = { isTTY: isatty(2), write: writeOnStandardError };

const ERASE_LINE = "\r\u001b[K";

/**
 * Shows the progress of a long check on a terminal's stderr; stdout is for the findings. Without a terminal nothing is written: what comes on stderr
 * there means that something is wrong, and cron sends it as a mail.
 */
export class CheckProgressLine {
  readonly #stream: { isTTY?: boolean; write(text: string): unknown };
  readonly #nowMs: () => number;
  #lastMs: number;
  #isShown = false;

  constructor(
    stream: { isTTY?: boolean; write(text: string): unknown } = STANDARD_ERROR,
    nowMs = () => performance.now(),
  ) {
    this.#stream = stream;
    this.#nowMs = nowMs;
    this.#lastMs = nowMs();
  }

  update({ bytes, totalBytes, records }: CheckProgress): void {
    const nowMs = this.#nowMs();
    if (!this.#stream.isTTY || nowMs - this.#lastMs < INTERVAL_MS) return;
    this.#lastMs = nowMs;
    const share = totalBytes === 0 ? 100 : Math.min(100, Math.floor((100 * bytes) / totalBytes));
    const text = `checked ${bytes} of ${totalBytes} bytes (${share}%), ${records} records`;
    this.#stream.write(`${ERASE_LINE}${text}`);
    this.#isShown = true;
  }

  /** Clears the line on a terminal. */
  end(): void {
    if (this.#isShown) this.#stream.write(ERASE_LINE);
  }
}
