import { openPipeAgain, writeToDescriptor, writeToDescriptorSync } from "../storage/file-system.js";
import type { LineSink } from "./log-destination.js";

const STDERR = 2;

/**
 * stderr. A pipe is opened once more so that writing to it never waits: a thread that waits in a write could not be ended. Files are written
 * beside the event loop, since a disk may keep a write waiting.
 */
export function standardError(): LineSink {
  const pipe = openPipeAgain(STDERR);
  if (pipe === undefined) {
    return {
      write: (bytes, done) => writeToDescriptor(STDERR, bytes, done),
      writeNow: (bytes) => writeToDescriptorSync(STDERR, bytes),
    };
  }
  return {
    write(bytes, done) {
      let written: number;
      try {
        written = writeToDescriptorSync(pipe, bytes);
      } catch (error) {
        done(error as NodeJS.ErrnoException, 0);
        return;
      }
      done(null, written);
    },
    writeNow: (bytes) => writeToDescriptorSync(pipe, bytes),
  };
}

/** Says it now, on whatever stderr is; where that fails, the exit code is all that is left to say it. */
export function sayOnStandardError(text: string): void {
  try {
    writeToDescriptorSync(STDERR, Buffer.from(text));
  } catch {
    // A full disk, or a reader that is gone.
  }
}
