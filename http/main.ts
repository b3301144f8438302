#!/usr/bin/env node
import { commandLine } from "./command-line.js";
import { sayOnStandardError } from "./standard-error.js";

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
]);

try {
  await commandLine().parseAsync();
} catch (error) {
  const { name, message, stack } = error as Error;
  process.exitCode = 1;
  sayOnStandardError(`inspection-service: ${EXPECTED.has(name) ? message : stack}\n`);
}
