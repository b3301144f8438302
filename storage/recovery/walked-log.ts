/** What a walk through the log is given, and what it finds. */
import type { FileSystem, StoreFile } from "../disk/file-system-interface.js";
import type { CommittedBatch } from "../log/committed-batch.js";
import type { LogEvidence } from "../log/log-options.js";
import { isBaseBehindUnknownEnd } from "../log/segment.js";
import { RECOVERY_CASES, type RecoveryCase } from "./recovery-cases.js";
import type { RecoveryReportBuilder } from "./recovery-report.js";

export interface WalkOptions {
  fileSystem: FileSystem;
  directory: string;
  builder: RecoveryReportBuilder;
  onRecords(batch: CommittedBatch): Promise<void> | void;
  /** Keeps damaged bytes and gives the name under which it did; null when it does not keep them. */
  quarantine(segment: string, file: StoreFile, offset: number, lengthBytes: number): Promise<string | null>;
  /** True: sealed segments are not read if their hint files are right. */
  usesHints?: boolean | undefined;
  /** What proves, beside the log itself, that it held records. */
  evidence?: LogEvidence | null | undefined;
  /**
   * For a reader that goes on when the disk does not give bytes. True when the disk did not give all bytes of this file
   * so far. If that is the newest segment, its end is damaged, not torn: a tail that a crash tore can be read.
   */
  isUnreadable?(path: string): boolean;
  /** False when recovery itself delivers the records that are not proven, after it has made them durable. */
  deliversTail: boolean;
}

/** Whole records at the end of the newest segment that are not proven durable; empty when `endOffset` is `offset`. */
export interface LogTail {
  offset: number;
  endOffset: number;
  firstSequence: number;
  lastSequence: number;
  onlyMarks: boolean;
}

export interface NewestSegment {
  name: string;
  base: number;
  /** Null when its header is not readable. */
  salt: number | null;
  sizeBytes: number;
  tail: LogTail;
  /** True when only the tail follows its last proven record. */
  isContinuable: boolean;
  /** The largest sequence number that a record on disk claims to be durable. */
  claimedSequence: number;
  /** The last record that is not a mark, if it is after `claimedSequence` and before the tail; else `claimedSequence`. */
  lastDataSequence: number;
}

export interface WalkEnd {
  /** Null when there is no segment. */
  newest: NewestSegment | null;
  /** Name of the segment before it, if there is one. */
  beforeNewest: string | null;
  /** The sequence number that the next record gets, or the first one of the tail when there is a tail. */
  nextSequence: number;
  temporaryFiles: string[];
  /** Names of segments that do not count: see stray-segments.ts. */
  strays: string[];
  superseded: { name: string; sizeBytes: number }[];
  /** Names of hint files that belong to no sealed segment. */
  strayHints: string[];
}

/** A place of a segment, and what is wrong with it, for people. */
export interface DamagedPlace {
  offset: number;
  length: number;
  reason: string;
}

/** A walk through the log, and what it has found so far. */
export class LogWalk {
  readonly options: WalkOptions;
  readonly superseded: { name: string; sizeBytes: number }[] = [];

  constructor(options: WalkOptions) {
    this.options = options;
  }

  find(
    recoveryCase: RecoveryCase,
    segment: string,
    place: DamagedPlace,
    firstLost: number | null = null,
    lastLost: number | null = null,
    quarantineFile: string | null = null,
  ): void {
    const { builder } = this.options;
    builder.decided(recoveryCase);
    const code = RECOVERY_CASES[recoveryCase];
    if (code === null) return;
    builder.add({
      code,
      segment,
      offset: place.offset,
      lengthBytes: place.length,
      firstLost,
      lastLost: lastLost !== null && isBaseBehindUnknownEnd(lastLost + 1) ? null : lastLost,
      quarantineFile,
      detail: place.reason,
    });
  }

  /** A file beside the log says that the log went on up to `lastLost`. That is null when the file only says that there was a log. */
  endLost(
    { source }: LogEvidence,
    segment: string,
    offset: number,
    firstLost: number,
    lastLost: number | null,
    end: string,
  ): void {
    const known = lastLost === null ? "there was a log" : `everything up to ${lastLost} was durable`;
    const reason = `${end}, and ${source} says that ${known}`;
    this.find("end_lost", segment, { offset, length: 0, reason }, firstLost, lastLost);
  }
}
