#!/usr/bin/env node
import { ignoreDebugSignal } from "../workers/debug-signal.js";
import { commandLine } from "./commands/command-line.js";
import { OutputError } from "./commands/command-output.js";
import { sayOnStandardError } from "./log/standard-error.js";

/**
 * Errors whose message tells the caller everything; for any other error the stack is shown. They are listed by name, because their classes
 * are in modules that only some commands load.
 */
const EXPECTED: ReadonlySet<string> = new Set([
  "UsageError",
  "HttpServerError",
  "RecorderError",
  "StorageError",
  "FileSystemError",
  "DemoCellError",
  "ExportError",
  "BackupError",
  "OutputError",
]);

ignoreDebugSignal();

try {
  await commandLine().parseAsync();
} catch (error) {
  const { name, message, stack } = error as Error;
  process.exitCode = 1;
  // A reader such as `head` has read enough: no error.
  const isQuiet = error instanceof OutputError && error.isReaderGone;
  if (!isQuiet) sayOnStandardError(`inspection-service: ${EXPECTED.has(name) ? message : stack}\n`);
}
