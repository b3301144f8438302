import type { JsonObject } from "../core/json/json.js";

/**
 * What can go wrong in the store, by code:
 * - `log_failed`: the log refused a write or a sync earlier; nothing is written any more until the store is opened again.
 * - `record_too_large`: a record is over a limit of the record format.
 * - `log_overloaded`: more is waiting to be committed than the log may hold in memory.
 * - `log_closed`: the log was closed.
 * - `record_damaged`, `record_missing`: a record cannot be read back.
 * - `record_undecodable`: a record is as it was written, by its CRCs, and says nothing that this release writes.
 * - `format_unsupported`: the store, a segment or a record is of a format that this release does not read.
 * - `record_type_unsupported`: the log holds a record that must be understood and is not.
 * - `store_missing`: there is no store in the folder, or no folder that one could begin in.
 * - `format_missing`: there is a log in the folder, and nothing that says its format.
 * - `directory_unusable`: the data directory is no folder, or cannot be written.
 * - `log_missing`: there is a store in the folder, but its log is gone.
 * - `directory_locked`: another process has the data directory.
 * - `capture_damaged`, `capture_missing`: stored bytes of a run are not what was stored, or not there.
 * - `capture_failed`: a capture file refused a write or a sync.
 * - `snapshot_damaged`: a snapshot is not what was written.
 */
export const STORAGE_ERROR_CODES = [
  "log_failed",
  "record_too_large",
  "log_overloaded",
  "log_closed",
  "record_damaged",
  "record_missing",
  "record_undecodable",
  "format_unsupported",
  "record_type_unsupported",
  "store_missing",
  "format_missing",
  "directory_unusable",
  "log_missing",
  "directory_locked",
  "capture_damaged",
  "capture_missing",
  "capture_failed",
  "snapshot_damaged",
] as const;
export type StorageErrorCode = (typeof STORAGE_ERROR_CODES)[number];

/** A failure of the store as data, as it crosses threads. */
export interface StorageErrorData {
  code: StorageErrorCode;
  message: string;
  params: JsonObject;
}

/** Thrown within a thread only: across threads goes its `data`. */
export class StorageError extends Error {
  readonly data: StorageErrorData;

  constructor(code: StorageErrorCode, message: string, params: JsonObject = {}) {
    super(message);
    this.name = "StorageError";
    this.data = { code, message, params };
  }

  get code(): StorageErrorCode {
    return this.data.code;
  }
}
