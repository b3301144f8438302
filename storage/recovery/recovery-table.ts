/**
 * How recovery decides, case by case. "Proven" is the largest sequence number P of which the log itself says that everything up to it
 * had been synced: the largest durable_up_to of any intact record header, and for all but the newest segment the next segment's base
 * less one, since a segment gets its name only when everything before it is durable. A snapshot of the log that is not begun from says it
 * too, of its position (log-evidence.ts).
 *
 * What is proven was acknowledged and cannot be torn by a crash: damage to it is corruption, which is copied to the quarantine folder,
 * skipped, and reported. What is not proven is a prefix in order: it ends before the first damage or hole, and the rest is cut, since
 * what follows may depend on what is gone. What is whole but not proven is kept, but not where it lies: after a failed fsync the page
 * cache shows bytes that the disk does not have, and calls them clean.
 */
export const RECOVERY_TABLE = {
  no_segment: { situation: "the folder holds no segment", action: "create", finding: null },
  temporary_file: { situation: "a file of the temporary ending", action: "remove", finding: "temporary_file" },
  stray_copy: {
    situation: "a copy of another segment under a number at which the log needs none (stray-segments.ts)",
    action: "set_aside",
    finding: "segment_stray",
  },
  segment_unreadable: {
    situation:
      "neither copy of a segment's header is intact and says the base that the file name says, or the file is shorter",
    action: "quarantine",
    finding: "segment_unreadable",
  },
  header_copy_damaged: {
    situation: "one copy of a segment's header is damaged",
    action: "read_on",
    finding: "header_copy_damaged",
  },
  opening_state_damaged: {
    situation: "a segment does not start with an intact opening state",
    action: "quarantine",
    finding: "opening_state_damaged",
  },
  damage_proven: {
    situation: "damaged bytes, a stale or repeated record, where the next number is proven",
    action: "quarantine",
    finding: "record_damaged",
  },
  damage_unproven: {
    situation: "damaged bytes, a stale or repeated record, where the next number is not proven",
    action: "cut",
    finding: "tail_cut",
  },
  hole_proven: {
    situation: "a hole in the numbers, or an early end, where the next number is proven",
    action: "report",
    finding: "sequences_missing",
  },
  hole_unproven: {
    situation: "a hole in the numbers that reaches beyond what is proven",
    action: "cut",
    finding: "tail_cut",
  },
  end_lost: {
    situation:
      "the log ends before a number that a snapshot of it says was durable, or is not there in a store that had one",
    action: "begin",
    finding: "log_lost",
  },
  superseded: {
    situation: "records at the end of a segment that the next segment has",
    action: "truncate",
    finding: "superseded",
  },
  tail_records: {
    situation: "whole records that are not proven, at the end of the newest segment",
    action: "copy",
    finding: null,
  },
  tail_marks: {
    situation: "nothing but marks that are not proven, at the end of the newest segment",
    action: "rewrite",
    finding: null,
  },
  newest_ends_in_damage: {
    situation: "the newest segment ends in a cut, or in corruption, without a whole record that is not proven",
    action: "begin",
    finding: null,
  },
} as const satisfies Record<string, { situation: string; action: RecoveryAction; finding: FindingCode | null }>;

export type RecoveryCase = keyof typeof RECOVERY_TABLE;

/**
 * - `create`: the store's first segment.
 * - `remove`: the file.
 * - `set_aside`: move the file to the quarantine folder; it counts for nothing.
 * - `quarantine`: copy the bytes to the quarantine folder, leave them where they are, skip them.
 * - `read_on`, `report`: nothing but the finding.
 * - `cut`: read no further in this segment; go on in a new one.
 * - `truncate`: shorten the file to what it has for itself.
 * - `copy`: into a new segment, whose base is their first number; then shorten the old one.
 * - `rewrite`: in place, and sync; then go on in the segment. A mark carries nothing that could get lost.
 * - `begin`: a new segment.
 *
 * Two situations are no damage and end the recovery with an error: a segment or record of another format version
 * (`format_unsupported`), and a record of an unknown type that must be understood (`record_type_unsupported`).
 */
export type RecoveryAction =
  | "create"
  | "remove"
  | "set_aside"
  | "quarantine"
  | "read_on"
  | "report"
  | "cut"
  | "truncate"
  | "copy"
  | "rewrite"
  | "begin";

/**
 * The kinds of damage, as findings name them:
 * - `temporary_file`: a file that was being written when the process ended.
 * - `segment_stray`: a copy that somebody made of another segment, which is there: nothing is lost with it.
 * - `header_copy_damaged`: one of the two copies of a segment's header.
 * - `segment_unreadable`: both copies, or a header of another segment, or less than a header: none of its records can be told from noise.
 * - `opening_state_damaged`: the record that restates what came before the segment. No crash leaves a segment without it: where nothing
 *   stands behind it in the newest one, anything may have.
 * - `record_damaged`: bytes that are no record, a record whose content does not match its CRC, or one that the file ends within.
 * - `sequences_missing`: numbers that are nowhere, without damaged bytes in their place.
 * - `log_lost`: the end of the log, or all of it: what is beside it proves that there was more.
 * - `tail_cut`: what stood behind the last whole record that was not proven durable.
 * - `superseded`: bytes that an earlier recovery had copied into the next segment.
 */
export type FindingCode =
  | "temporary_file"
  | "segment_stray"
  | "header_copy_damaged"
  | "segment_unreadable"
  | "opening_state_damaged"
  | "record_damaged"
  | "sequences_missing"
  | "log_lost"
  | "tail_cut"
  | "superseded";

/** True for what can have lost durable records or shows that the disk did not keep what it was given. */
export function isCorruption(code: FindingCode): boolean {
  return (
    code === "header_copy_damaged" ||
    code === "segment_unreadable" ||
    code === "opening_state_damaged" ||
    code === "record_damaged" ||
    code === "sequences_missing" ||
    code === "log_lost"
  );
}
