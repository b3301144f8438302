/** stderr, which is given and no file of the store: what fails with it is nobody's data. */

import { constants, fstatSync, openSync, write, writeSync } from "node:fs";
import type { LineSink } from "./log-destination.js";

/**
 * stderr. A pipe is opened once more so that writing to it never waits, whoever else has it: a thread that waits in a write could not be
 * ended. Files are written beside the event loop, since a disk may keep a write waiting.
 */
export function standardError(): LineSink {
  const pipe = nonBlockingPipe(2);
  if (pipe === undefined) {
    return { write: (bytes, done) => write(2, bytes, done), writeNow: (bytes) => writeSync(2, bytes) };
  }
  return {
    write(bytes, done) {
      let written: number;
      try {
        written = writeSync(pipe, bytes);
      } catch (error) {
        done(error as NodeJS.ErrnoException, 0);
        return;
      }
      done(null, written);
    },
    writeNow: (bytes) => writeSync(pipe, bytes),
  };
}

/** A descriptor of its own for the same pipe; undefined for what is no pipe, or where the system does not give one. */
function nonBlockingPipe(fd: number): number | undefined {
  try {
    if (!fstatSync(fd).isFIFO()) return undefined;
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
}

/** Says it now, on whatever stderr is; where that fails, the exit code is all that is left to say it. */
export function sayOnStandardError(text: string): void {
  try {
    writeSync(2, text);
  } catch {
    // A full disk, or a reader that is gone.
  }
}
