#!/usr/bin/env node
import { commandLine } from "./command-line.js";

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
  console.error(`inspection-service: ${EXPECTED.has(name) ? message : stack}`);
  process.exitCode = 1;
}
