/**
 * The cases that a start can meet in a log, with the name of each finding. log-walk.ts and tail-or-damage.ts decide which of them applies.
 *
 * A record is *proven* when the log itself says that it had been synced. The largest proven sequence number is the largest durable_up_to of any
 * intact record header. For every segment except the newest it is at least the next segment's base less one, because a segment gets its name only
 * when everything before it is durable. A hint file proves its segment, too (log-evidence.ts).
 *
 * Proven records may have been acknowledged, and a crash cannot tear them. So damage to them is corruption: it is copied to the quarantine folder,
 * skipped, and reported. Records that are not proven are kept up to the first damage or gap. The rest is cut off, because it may depend on what is
 * gone. Records that are kept, but not proven, are copied to a new segment: after a failed fsync the page cache can show bytes, and call them clean,
 * that the disk does not have.
 */
export const RECOVERY_CASES = {
  no_segment: { situation: "the folder holds no segment", action: "create", finding: null },
  temporary_file: { situation: "a file with the temporary ending", action: "remove", finding: "temporary_file" },
  stray_copy: {
    situation: "a copy of another segment, under a number at which the log needs no segment (stray-segments.ts)",
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
    situation: "damaged bytes, or a stale or repeated record, where the next number is proven",
    action: "quarantine",
    finding: "record_damaged",
  },
  damage_unproven: {
    situation: "damaged bytes, or a stale or repeated record, where the next number is not proven",
    action: "cut",
    finding: "tail_cut",
  },
  hole_proven: {
    situation: "a gap in the numbers, or an early end, where the next number is proven",
    action: "report",
    finding: "sequences_missing",
  },
  hole_unproven: {
    situation: "a gap in the numbers that reaches beyond what is proven",
    action: "cut",
    finding: "tail_cut",
  },
  hint_missing: {
    situation: "a sealed segment without damage has no hint file, as after a crash",
    action: "make",
    finding: "hint_missing",
  },
  hint_damaged: { situation: "a hint file is not as it was written", action: "quarantine", finding: "hint_damaged" },
  hint_unusable: {
    situation:
      "a hint file is of another segment or release, or its segment has changed since, or no sealed segment has its number",
    action: "make",
    finding: "hint_unusable",
  },
  end_lost: {
    situation: "the log ends before a number that a hint file proves to be durable, or a store that had a log has none",
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

export type RecoveryCase = keyof typeof RECOVERY_CASES;

/**
 * - `create`: the store's first segment.
 * - `remove`: the file.
 * - `set_aside`: move the file to the quarantine folder and ignore it.
 * - `quarantine`: copy the bytes to the quarantine folder, leave them where they are, skip them.
 * - `read_on`, `report`: only note the finding.
 * - `cut`: read no further in this segment; go on in a new one.
 * - `truncate`: shorten the file to the records that the next segment does not have.
 * - `copy`: copy the records to a new segment, whose base is their first number; then shorten the old one.
 * - `rewrite`: write the marks again in place, and sync; then go on in the segment. A mark holds nothing that could get lost.
 * - `begin`: begin a new segment.
 * - `make`: read the segment in place of its hint file, which is made again later; remove the file where there is no segment.
 *
 * Two situations are no damage, and end the recovery with an error: a segment or record of another format version
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
  | "make"
  | "begin";

/**
 * The kinds of damage, as findings name them:
 * - `temporary_file`: a file was being written when the process ended.
 * - `segment_stray`: somebody copied a segment under another number. The original is there, so nothing is lost.
 * - `header_copy_damaged`: one of the two copies of a segment's header is damaged.
 * - `segment_unreadable`: both copies are damaged, or the header is of another segment, or the file is shorter than a header. No record of the
 *   segment can be recognised.
 * - `opening_state_damaged`: the record that restates what came before the segment is damaged or missing. No crash causes that. In the newest
 *   segment, any number of records may have stood behind it.
 * - `record_damaged`: bytes are no record, a record's content does not match its CRC, or the file ends within a record.
 * - `sequences_missing`: numbers are missing, without damaged bytes in their place.
 * - `hint_missing`: a sealed segment has no hint file. Nothing is lost.
 * - `hint_damaged`: a hint file is damaged. Nothing is lost, but the disk did not keep what was written.
 * - `hint_unusable`: a hint file does not fit its segment. Nothing is lost.
 * - `log_lost`: the end of the log, or all of it, is missing: a file beside it proves that there was more.
 * - `tail_cut`: bytes behind the last whole record were not proven durable and were cut off.
 * - `superseded`: an earlier recovery had copied these bytes into the next segment.
 */
export type FindingCode =
  | "temporary_file"
  | "segment_stray"
  | "header_copy_damaged"
  | "segment_unreadable"
  | "opening_state_damaged"
  | "record_damaged"
  | "sequences_missing"
  | "hint_missing"
  | "hint_damaged"
  | "hint_unusable"
  | "log_lost"
  | "tail_cut"
  | "superseded";

/** True for damage that can have lost durable records, or that shows that the disk did not keep what was written. */
export function isCorruption(code: FindingCode): boolean {
  return (
    code === "header_copy_damaged" ||
    code === "segment_unreadable" ||
    code === "opening_state_damaged" ||
    code === "record_damaged" ||
    code === "sequences_missing" ||
    code === "hint_damaged" ||
    code === "log_lost"
  );
}
