import { isatty } from "node:tty";
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
 * stdout, for lines that people read. The service neither waits for it nor ends when it is full or its reader has gone. If a full one has not
 * accepted all lines when the process ends, stderr and the exit code say so.
 * @param onGone called once, when the reader of stdout has gone
 */
export function standardOutput(onGone: () => void): (text: string) => void {
  const output = new LogDestination(streamSink(STDOUT), (lines) => `(${lines} lines were dropped)\n`, onGone);
  process.on("exit", () => {
    const cause = output.flushSync();
    if (cause === null) return;
    sayOnStandardError(`inspection-service: stdout did not accept all lines: ${cause}\n`);
    process.exitCode ||= 1;
  });
  return (text) => output.write(`${escapedLines(text)}\n`);
}

/**
 * An output stream of the process. A pipe is opened once more so that writing never blocks: a blocked thread could not be ended. Files are
 * written by another thread, because a disk may be slow.
 */
function streamSink(descriptor: number): LineSink {
  const pipe = openPipeAgain(descriptor);
  if (pipe === undefined) {
    // Asked now: a terminal that has closed is none any more.
    const gone = isatty(descriptor) ? goneTerminal : (error: NodeJS.ErrnoException) => error;
    return {
      write: (bytes, done) =>
        writeToDescriptor(descriptor, bytes, (error, written) => done(error && gone(error), written)),
      writeNow(bytes) {
        try {
          return writeToDescriptorSync(descriptor, bytes);
        } catch (error) {
          throw gone(error as NodeJS.ErrnoException);
        }
      },
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

/** A terminal that has closed gives EIO, as a broken disk does. Nobody reads it any more: the same as a pipe's EPIPE. */
function goneTerminal(error: NodeJS.ErrnoException): NodeJS.ErrnoException {
  return error.code === "EIO" ? Object.assign(error, { code: "EPIPE" }) : error;
}

/** Writes to stderr at once. If that fails, only the exit code tells the failure. @param text whole lines */
export function sayOnStandardError(text: string): void {
  writeOnStandardError(escapedLines(text));
}

/** The same without escaping, for terminal control sequences of our own. */
export function writeOnStandardError(text: string): void {
  try {
    writeToDescriptorSync(STDERR, Buffer.from(text));
  } catch {
    // A full disk, or a reader that is gone.
  }
}
