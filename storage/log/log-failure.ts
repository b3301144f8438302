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

export function failed(failure: LogFailure): StorageError {
  return new StorageError(failure.code, failure.message, failure.params);
}

/**
 * Why the log commits no more records; null while it commits them.
 *
 * @param noRoom what refused the last records when the log's owner stopped
 */
export function endError(failure: LogFailure | null, noRoom: Error | null): StorageError | null {
  if (failure !== null) return failed(failure);
  if (noRoom === null) return null;
  const { message } = noRoom;
  return new StorageError("log_failed", `there is no room for the record: ${message}`, { cause: message });
}
