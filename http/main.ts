#!/usr/bin/env node
import { ignoreDebugSignal } from "../workers/debug-signal.js";
import { commandLine } from "./commands/command-line.js";
import { OutputError } from "./commands/command-output.js";
import { sayOnStandardError } from "./log/standard-error.js";

/**
 * Errors whose message says all that the person who started the service needs; of others the stack is shown. By name: their classes stand in
 * modules that only the commands load that throw them.
 */
const EXPECTED: ReadonlySet<string> = new Set([
  "UsageError",
  "HttpServerError",
  "RecorderError",
  "StorageError",
  "FileSystemError",
  "DemoCellError",
  "ExportError",
  "OutputError",
]);

ignoreDebugSignal();

try {
  await commandLine().parseAsync();
} catch (error) {
  const { name, message, stack } = error as Error;
  process.exitCode = 1;
  // Who reads no more has what it wanted.
  const isQuiet = error instanceof OutputError && error.isReaderGone;
  if (!isQuiet) sayOnStandardError(`inspection-service: ${EXPECTED.has(name) ? message : stack}\n`);
}
