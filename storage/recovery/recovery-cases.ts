/**
 * The cases that a start can meet in a log, with the name of each finding. log-walk.ts and tail-or-damage.ts decide which of them applies.
 *
 * A record is *proven* when the log itself says that it had been synced. The largest proven sequence number is the largest durable_up_to of any
 * intact record header. For every segment except the newest it is at least the next segment's base less one, because a segment gets its name only
 * when everything before it is durable. A hint file proves its segment, too (log-evidence.ts).
 *
 * Proven records may have been acknowledged, and a crash cannot tear them. So damage to them is corruption: it is copied to the quarantine folder,
 * skipped, and reported. Records that are not proven are kept up to the first damage or gap. The rest is cut off, because it may depend on what is
 * gone. Records that are kept, but not proven, are copied to a new segment. The reason: after a failed fsync the page cache can show bytes as clean
 * that the disk does not have.
 *
 * Two situations are no damage, and end the recovery with an error: a segment or record of another format version (`format_unsupported`), and a
 * record of an unknown type that must be understood (`record_type_unsupported`).
 */
export const RECOVERY_CASES = {
  /** The folder holds no segment. The first one is created. */
  no_segment: null,
  /** A file was being written when the process ended. It is removed. */
  temporary_file: "temporary_file",
  /**
   * Somebody copied a segment to a number at which the log needs none (stray-segments.ts). The original is there, so nothing is lost. The copy is
   * moved to the quarantine folder and ignored.
   */
  stray_copy: "segment_stray",
  /**
   * No copy of a segment's header is intact and has the base of the file name, or the file is shorter than a header. No record of the segment can be
   * recognised. Its bytes are quarantined: copied to the quarantine folder, left where they are, and skipped.
   */
  segment_unreadable: "segment_unreadable",
  /** One copy of a segment's header is damaged. The other one is read. */
  header_copy_damaged: "header_copy_damaged",
  /**
   * A segment does not start with an intact opening state, the record that restates what came before it. No crash
   * causes that. In the newest segment, any number of records may have followed it. The bytes are quarantined.
   */
  opening_state_damaged: "opening_state_damaged",
  /**
   * The next sequence number is proven, but there is damage in its place. Bytes are no record, or a record's content
   * does not match its CRC, or the file ends within a record, or a record is stale or repeated. The bytes are
   * quarantined.
   */
  damage_proven: "record_damaged",
  /** The same damage, but the next sequence number is not proven. The segment is read no further. The log goes on in a new one. */
  damage_unproven: "tail_cut",
  /** The next sequence number is proven, but it is missing without damaged bytes in its place, or the segment ends before it. */
  gap_proven: "sequences_missing",
  /** A gap in the sequence numbers reaches beyond what is proven. The log goes on as after `damage_unproven`. */
  gap_unproven: "tail_cut",
  /** A sealed segment without damage has no hint file, as after a crash. It is read, and the file is made again later. */
  hint_missing: "hint_missing",
  /** A hint file is not as it was written. Nothing is lost, but the disk did not keep it. It is quarantined and made again, as for `hint_missing`. */
  hint_damaged: "hint_damaged",
  /**
   * A hint file belongs to another segment or release, or its segment has changed since: the start goes on as for
   * `hint_missing`. Or no sealed segment has its number: then it is removed.
   */
  hint_unusable: "hint_unusable",
  /**
   * The log ends before a sequence number that a hint file proves to be durable, or a store that had a log has none. A
   * new segment begins after the last sequence number that is known to have existed.
   */
  end_lost: "log_lost",
  /** An earlier recovery has copied the records at the end of a segment into the next one. The file is shortened. */
  superseded: "superseded",
  /**
   * Whole records that are not proven are at the end of the newest segment. They are copied to a new segment, whose
   * base is their first sequence number. Then the old one is shortened.
   */
  tail_records: null,
  /**
   * Only marks that are not proven are at the end of the newest segment. They are written again in place and synced,
   * and the log goes on in the segment: a mark holds nothing that could get lost.
   */
  tail_marks: null,
  /** The newest segment ends in a cut, or in corruption, and has no whole unproven records. A new segment begins. */
  newest_ends_in_damage: null,
} as const;

export type RecoveryCase = keyof typeof RECOVERY_CASES;

/** The kinds of damage, as findings name them. */
export type FindingCode = NonNullable<(typeof RECOVERY_CASES)[RecoveryCase]>;

const CORRUPTION: ReadonlySet<FindingCode> = new Set([
  "header_copy_damaged",
  "segment_unreadable",
  "opening_state_damaged",
  "record_damaged",
  "sequences_missing",
  "hint_damaged",
  "log_lost",
]);

/** True for damage that can have lost durable records, or that shows that the disk did not keep what was written. */
export function isCorruption(code: FindingCode): boolean {
  return CORRUPTION.has(code);
}
