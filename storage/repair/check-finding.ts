import type { FindingCode } from "../recovery/recovery-table.js";
import type { StorageErrorCode } from "../storage-error.js";

/** Codes of a check's own, beside those of the recovery table and of a StorageError. `CheckFinding` says what each means. */
export const CHECK_CODES = [
  "record_undecodable",
  "record_inconsistent",
  "unreadable",
  "capture_left",
  "capture_unnamed",
  "capture_unjudged",
  "file_unknown",
  "snapshot_damaged",
  "snapshot_unusable",
  "snapshot_misnamed",
  "snapshot_left",
  "snapshot_differs",
  "quarantined",
] as const;
export type CheckFindingCode = FindingCode | StorageErrorCode | (typeof CHECK_CODES)[number];

export interface CheckFinding {
  /**
   * A code of the recovery table, of a StorageError (`capture_damaged`, `capture_missing`, `format_unsupported`, …), or:
   * - `record_undecodable`: right by its CRCs, and nothing that this release writes.
   * - `record_inconsistent`: a run's end that does not name stored bytes which an earlier record of the run did; a record whose index section
   *   says something else than its body, or that refers to a run, an event or a webhook which no record of a whole log tells of.
   * - `unreadable`: the disk does not give these bytes, or (offset and length 0) does not open the file, say its size or list the folder;
   *   what they belong to is told beside it.
   * - `capture_left`: a file whose tombstone is there; retention unlinks it at the next start, if it is of the last ones.
   * - `capture_unnamed`: a capture file that no record names: of messages that were never acknowledged, or of records that are lost.
   * - `capture_unjudged`: one that no record names which could be read, where a part of the log could not be.
   * - `file_unknown`: what is none of the service's.
   * - `snapshot_damaged`: damage that costs no answer; the next start puts the file in quarantine.
   * - `snapshot_unusable` (of another log, or of another version): a snapshot that the next start removes, or puts in quarantine where the
   *   log has lost records.
   * - `snapshot_misnamed`: a snapshot that stands under another number than its own; an opening goes by its own.
   * - `snapshot_left`: a snapshot that is not the newest: a crash may leave it, and the next start removes it.
   * - `snapshot_differs`: a snapshot that fits the log and says something else: a fault of the service.
   * - `quarantined`: bytes that an earlier opening of the store found damaged and kept, or a snapshot, damaged or of a log that has lost records.
   */
  code: CheckFindingCode;
  /** File, relative to the data directory. */
  file: string;
  offset: number;
  lengthBytes: number;
  message: string;
}
