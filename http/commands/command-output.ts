import { writeToDescriptorSync } from "../../storage/disk/file-system.js";
import { escaped } from "../log/escaped-text.js";

const STDOUT = 1;
/** Between two looks whether a pipe's reader has taken something. */
const POLL_MS = 10;

/** What a command had to say is lost. Its message is for the person who called the command. */
export class OutputError extends Error {
  override name = "OutputError";
  /** The reader has gone, as that of `| head` does when it has enough. */
  readonly isReaderGone: boolean;

  constructor(code: string) {
    super(`stdout takes no more (${code}): what it was given is not whole`);
    this.isReaderGone = code === "EPIPE";
  }
}

/** Prints a line of a command, and waits for a slow reader. @throws OutputError */
export function printLine(text: string): void {
  print(`${escaped(text)}\n`);
}

/** @throws OutputError */
export function print(text: string): void {
  let rest: Uint8Array = Buffer.from(text);
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
