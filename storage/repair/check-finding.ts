import { FileSystemError } from "../disk/file-system-error.js";
import type { FindingCode } from "../recovery/recovery-cases.js";
import { StorageError, type StorageErrorCode } from "../storage-error.js";

/** Codes that only a check has, besides those of the recovery table and of a StorageError. `CheckFinding` explains them. */
export const CHECK_CODES = [
  "record_undecodable",
  "unreadable",
  "capture_left",
  "capture_unnamed",
  "capture_unjudged",
  "file_unknown",
  "hint_differs",
  "quarantined",
] as const;
export type CheckFindingCode = FindingCode | StorageErrorCode | (typeof CHECK_CODES)[number];

export interface CheckFinding {
  /**
   * A code of the recovery table, of a StorageError (`capture_damaged`, `capture_missing`, `format_unsupported`, …), or:
   * - `record_undecodable`: the record matches its CRCs, but this release never writes such content.
   * - `unreadable`: the disk cannot read these bytes. With offset and length 0 it cannot open the file, tell its size
   *   or list the folder. Other findings name what the bytes belong to.
   * - `capture_left`: retention removed the file's run, but the file still exists. The next start unlinks it, if it is one of the last.
   * - `capture_unnamed`: no record names the capture file: its message was never acknowledged, or its record is lost.
   * - `capture_unjudged`: no readable record names the capture file, and a part of the log is unreadable.
   * - `file_unknown`: the file does not belong to the service.
   * - `hint_differs`: a hint file is intact, but says something else than its segment: a fault of the service.
   * - `quarantined`: an earlier start found these bytes damaged and kept a copy.
   */
  code: CheckFindingCode;
  /** File, relative to the data directory. */
  file: string;
  offset: number;
  lengthBytes: number;
  message: string;
}

/** The code of an error of the store or the disk. Any other error is a fault of the check itself, and is thrown. */
export function codeOf(error: unknown): CheckFindingCode {
  if (error instanceof StorageError) return error.code;
  if (error instanceof FileSystemError) return "unreadable";
  throw error;
}
