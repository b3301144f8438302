#!/usr/bin/env node
import { FileSystemError } from "../storage/file-system.js";
import { StorageError } from "../storage/storage-error.js";
import { RecorderError } from "../workers/recorder/recorder-handle.js";
import { commandLine } from "./command-line.js";
import { DemoCellError } from "./demo-command.js";
import { ExportError } from "./export-command.js";
import { HttpServerError } from "./http-server.js";
import { UsageError } from "./resolve-options.js";

/** Errors whose message says all that the person who started the service needs; of others the stack is shown. */
const EXPECTED = [
  UsageError,
  HttpServerError,
  RecorderError,
  StorageError,
  FileSystemError,
  DemoCellError,
  ExportError,
];

try {
  await commandLine().parseAsync();
} catch (error) {
  const isExpected = EXPECTED.some((kind) => error instanceof kind);
  console.error(`inspection-service: ${isExpected ? (error as Error).message : (error as Error).stack}`);
  process.exitCode = 1;
}
