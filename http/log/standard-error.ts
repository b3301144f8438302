import { openPipeAgain, writeToDescriptor, writeToDescriptorSync } from "../../storage/disk/file-system.js";
import { escapedLines } from "./escaped-text.js";
import { type LineSink, LogDestination } from "./log-destination.js";

const STDOUT = 1;
const STDERR = 2;

/** stderr, see `streamSink`. */
export function standardError(): LineSink {
  return streamSink(STDERR);
}

/**
 * stdout, for lines that people read. It may be full, or its reader gone: nothing of the service waits for it or ends by it. What a full
 * one has not taken when the process ends is told then, on stderr and by the exit code.
 * @param onGone called once a write has found that nobody reads it any more
 */
export function standardOutput(onGone: () => void): (text: string) => void {
  const output = new LogDestination(streamSink(STDOUT), (lines) => `(${lines} lines were dropped)\n`, onGone);
  process.on("exit", () => {
    const cause = output.flushSync();
    if (cause === null) return;
    sayOnStandardError(`inspection-service: stdout did not take all lines: ${cause}\n`);
    process.exitCode ||= 1;
  });
  return (text) => output.write(`${escapedLines(text)}\n`);
}

/**
 * An output stream of the process. A pipe is opened once more so that writing to it never waits: a thread that waits in a write could not
 * be ended. Files are written beside the event loop, since a disk may keep a write waiting.
 */
function streamSink(descriptor: number): LineSink {
  const pipe = openPipeAgain(descriptor);
  if (pipe === undefined) {
    return {
      write: (bytes, done) => writeToDescriptor(descriptor, bytes, done),
      writeNow: (bytes) => writeToDescriptorSync(descriptor, bytes),
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

/** Says it now, on whatever stderr is; where that fails, the exit code is all that is left to say it. @param text of whole lines */
export function sayOnStandardError(text: string): void {
  writeOnStandardError(escapedLines(text));
}

/** The same, of text that is meant for a terminal to obey. */
export function writeOnStandardError(text: string): void {
  try {
    writeToDescriptorSync(STDERR, Buffer.from(text));
  } catch {
    // A full disk, or a reader that is gone.
  }
}
