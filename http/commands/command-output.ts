import { writeToDescriptorSync } from "../../storage/disk/file-system.js";
import { escaped } from "../log/escaped-text.js";

const STDOUT = 1;
/** How often a full pipe is tried again. */
const POLL_MS = 10;

/** A command's output is lost. The message is for the person who called the command. */
export class OutputError extends Error {
  override name = "OutputError";
  /** The reader has gone, as `| head` does when it has read enough. */
  readonly isReaderGone: boolean;

  constructor(code: string) {
    super(`stdout cannot be written (${code}): the output is incomplete`);
    this.isReaderGone = code === "EPIPE";
  }
}

/** Prints a line of a command, and waits for a slow reader. @throws OutputError */
export function printLine(text: string): void {
  print(`${escaped(text)}\n`);
}

/** @throws OutputError */
export function print(text: string | Uint8Array): void {
  let rest: Uint8Array = typeof text === "string" ? Buffer.from(text) : text;
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeToDescriptorSync(STDOUT, rest));
    } catch (error) {
      const { code = "EIO" } = error as NodeJS.ErrnoException;
      if (code !== "EAGAIN") throw new OutputError(code);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, POLL_MS);
    }
  }
}
