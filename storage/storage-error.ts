import type { JsonObject } from "../core/json/json.js";

/**
 * What can go wrong in the store, by code:
 * - `log_failed`: a write or sync of the log failed earlier; nothing is written until the store is opened again.
 * - `record_too_large`: a record is over a limit of the record format.
 * - `log_overloaded`: more bytes wait to be committed than the log may hold in memory.
 * - `log_closed`: the log was closed.
 * - `record_damaged`, `record_missing`: a record cannot be read back.
 * - `record_undecodable`: a record matches its CRCs, but this release never writes such content.
 * - `format_unsupported`: the store, a segment or a record has a format that this release does not read.
 * - `record_type_unsupported`: the log holds a record that this release must understand and does not know.
 * - `store_missing`: there is no store in the folder, or no folder in which one could begin.
 * - `format_missing`: the folder holds a log, but no file that names its format.
 * - `directory_unusable`: the data directory is no folder, or cannot be written.
 * - `log_missing`: the folder holds a store, but its log is gone.
 * - `directory_locked`: another process uses the data directory.
 * - `capture_damaged`, `capture_missing`: stored bytes of a run differ from what was stored, or are gone.
 * - `capture_failed`: a write or sync of a capture file failed.
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
] as const;
export type StorageErrorCode = (typeof STORAGE_ERROR_CODES)[number];

/** A failure of the store as data, which threads post to each other. */
export interface StorageErrorData {
  code: StorageErrorCode;
  message: string;
  params: JsonObject;
}

/** A failure of the store. It is thrown only within a thread; its `data` crosses threads. */
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
