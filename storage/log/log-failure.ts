import { StorageError } from "../storage-error.js";
import type { LogFailure } from "./log-options.js";

/** @param what failed, as in "a write or sync failed" */
export function logFailure(error: unknown, what: string, firstSequence: number, isWithoutRoom: boolean): LogFailure {
  const cause = error instanceof Error ? error.message : String(error);
  return {
    code: "log_failed",
    message: `the log takes no more records, because ${what}: ${cause}`,
    params: { cause, first_sequence: firstSequence, since: new Date().toISOString(), without_room: isWithoutRoom },
  };
}

/** The error for a record that found no room before the log's owner stopped. */
export function withoutRoom({ message }: Error): StorageError {
  return new StorageError("log_failed", `there is no room for the record: ${message}`, { cause: message });
}

export function failed(failure: LogFailure): StorageError {
  return new StorageError(failure.code, failure.message, failure.params);
}
