#!/usr/bin/env node
import { writeSync } from "node:fs";
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
  process.exitCode = 1;
  try {
    writeSync(2, `inspection-service: ${EXPECTED.has(name) ? message : stack}\n`);
  } catch {
    // A full disk behind stderr: the exit code is all that is left to say it.
  }
}
