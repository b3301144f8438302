import type { FileSystem, StoreFile } from "../disk/file-system-interface.js";
import { TEMPORARY_SUFFIX } from "../disk/whole-files.js";
import { hintBaseOf } from "../log/hint-format.js";
import type { CommittedBatch } from "../log/log-batch.js";
import type { LogEvidence } from "../log/log-options.js";
import { LOG_RECORD_TYPE, readRecordHeader, recordLength } from "../log/record-format.js";
import {
  assertReadableVersion,
  baseBehindUnknownEnd,
  isBaseBehindUnknownEnd,
  readSegmentHeader,
  SEGMENT_HEADER_BYTES,
  segmentBaseOf,
  segmentName,
} from "../log/segment.js";
import { HintWalk, type HintWalkOptions } from "./hint-walk.js";
import { RECOVERY_CASES, type RecoveryCase } from "./recovery-cases.js";
import type { RecoveryReportBuilder } from "./recovery-report.js";
import { type RecordRun, type ScanItem, scanSegment } from "./segment-scan.js";
import { findStraySegments } from "./stray-segments.js";

export interface WalkOptions {
  fileSystem: FileSystem;
  directory: string;
  firstSequence: number;
  understandsType(type: number): boolean;
  builder: RecoveryReportBuilder;
  onRecords(batch: CommittedBatch): Promise<void> | void;
  /** Keeps damaged bytes and gives the name under which it did; null when it does not keep them. */
  quarantine(segment: string, file: StoreFile, offset: number, lengthBytes: number): Promise<string | null>;
  /** True: sealed segments are taken from their hint files where these are right. */
  usesHints?: boolean | undefined;
  /** What tells of the log beside it. */
  evidence?: LogEvidence | null | undefined;
  /**
   * For who reads on where the disk does not give bytes: whether it gave all of this file so far. A tail that a crash tore can be read, so that
   * the end of the newest segment is damaged, not torn, where it did not.
   */
  isUnreadable?(path: string): boolean;
  /** False when recovery delivers the records that are not proven itself, once it has made them durable. */
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
  /** True when nothing but the tail stands behind its last proven record. */
  isContinuable: boolean;
  /** The largest sequence number that a record on disk claims to be durable. */
  claimedSequence: number;
  /** The last record that is not a mark, when it lies behind `claimedSequence` and before the tail; else that. */
  lastDataSequence: number;
}

export interface WalkEnd {
  /** Null when there is no segment. */
  newest: NewestSegment | null;
  /** Name of the segment before it, if there is one. */
  beforeNewest: string | null;
  /** The number that the next record gets, or the first one of the tail when there is a tail. */
  nextSequence: number;
  temporaryFiles: string[];
  /** Names of segments that do not count: see stray-segments.ts. */
  strays: string[];
  superseded: { name: string; sizeBytes: number }[];
  /** Names of hint files that belong to no sealed segment. */
  strayHints: string[];
}

interface Gap {
  offset: number;
  length: number;
  reason: string;
}

interface Segment {
  name: string;
  base: number;
}

/** Reads the whole log in order and decides which case (recovery-cases.ts) each place is, without changing it. */
export async function walkLog(options: WalkOptions): Promise<WalkEnd> {
  const { fileSystem, directory, builder } = options;
  const { report } = builder;
  const named: Segment[] = [];
  const temporaryFiles: string[] = [];
  const hints: string[] = [];
  for (const { name, isDirectory } of await fileSystem.readDirectory(directory)) {
    if (isDirectory) continue;
    const base = segmentBaseOf(name);
    if (base !== undefined) named.push({ name, base });
    else if (hintBaseOf(name) !== undefined) hints.push(name);
    else if (name.endsWith(TEMPORARY_SUFFIX)) temporaryFiles.push(name);
  }
  named.sort((left, right) => left.base - right.base);
  temporaryFiles.sort();
  const ofNames = { bases: named.map(({ base }) => base), understandsType: () => true };
  const strays = new Set(await findStraySegments({ ...options, ...ofNames }));
  const segments = named.filter(({ base }) => !strays.has(base));
  report.segments = segments.length;
  const walk = new LogWalk(options);
  for (const name of temporaryFiles) {
    const lengthBytes = await fileSystem.sizeOf(`${directory}/${name}`);
    walk.find("temporary_file", name, { offset: 0, length: lengthBytes, reason: "left from an interrupted write" });
  }
  for (const { name } of named.filter(({ base }) => strays.has(base))) {
    const length = await fileSystem.sizeOf(`${directory}/${name}`);
    walk.find("stray_copy", name, { offset: 0, length, reason: "a copy of another segment, which is there" });
  }
  const [first] = segments;
  if (first !== undefined && first.base > options.firstSequence) {
    const gap = { offset: 0, length: 0, reason: `the log starts at ${first.base} instead of ${options.firstSequence}` };
    walk.find("hole_proven", first.name, gap, options.firstSequence, first.base - 1);
  }
  report.provenSequence = (first?.base ?? options.firstSequence) - 1;
  report.lastSequence = report.provenSequence;
  const bases = segments.map(({ base }) => base);
  const hintWalk = options.usesHints ? await HintWalk.of(walk.hintOptions(), bases, hints) : null;
  let newest: NewestSegment | null = null;
  for (const [position, segment] of segments.entries()) {
    const nextBase = segments[position + 1]?.base;
    if (nextBase !== undefined && hintWalk?.mayTake(segment.base))
      await hintWalk.take({ base: segment.base, nextBase }, () => walk.segment(segment, nextBase));
    else newest = await walk.segment(segment, nextBase);
  }
  return {
    newest,
    beforeNewest: segments.at(-2)?.name ?? null,
    nextSequence: newest === null ? walk.noSegment() : newest.tail.firstSequence,
    temporaryFiles,
    strays: [...strays].map(segmentName),
    superseded: walk.superseded,
    strayHints: hintWalk?.strays ?? [],
  };
}

class LogWalk {
  readonly superseded: { name: string; sizeBytes: number }[] = [];
  readonly #options: WalkOptions;

  constructor(options: WalkOptions) {
    this.#options = options;
  }

  hintOptions(): HintWalkOptions {
    return {
      ...this.#options,
      report: this.#options.builder.report,
      find: (found, name, length, reason, kept = null) =>
        this.find(found, name, { offset: 0, length, reason }, null, null, kept),
    };
  }

  /** There is no segment; gives the number that the log begins with. */
  noSegment(): number {
    const { evidence, firstSequence, builder } = this.#options;
    const durable = Math.max(evidence?.sequence ?? 0, firstSequence - 1);
    if (evidence) {
      const lastLost = evidence.sequence < firstSequence ? null : evidence.sequence;
      this.#endLost(segmentName(firstSequence), 0, evidence, firstSequence, lastLost, "there is no segment");
    }
    builder.report.provenSequence = durable;
    builder.report.lastSequence = durable;
    return durable + 1;
  }

  #endLost(
    segment: string,
    offset: number,
    { source }: LogEvidence,
    firstLost: number,
    lastLost: number | null,
    end: string,
  ): void {
    const known = lastLost === null ? "there was a log" : `everything up to ${lastLost} was durable`;
    const reason = `${end}, and ${source} says that ${known}`;
    this.find("end_lost", segment, { offset, length: 0, reason }, firstLost, lastLost);
  }

  #headerCopyDamaged(name: string, copy: 0 | 1): void {
    const offset = (copy * SEGMENT_HEADER_BYTES) / 2;
    const gap = { offset, length: SEGMENT_HEADER_BYTES / 2, reason: "one of the header's two copies" };
    this.find("header_copy_damaged", name, gap);
  }

  /** Walks one segment; `nextBase` is undefined for the newest. */
  async segment(segment: Segment, nextBase: number | undefined): Promise<NewestSegment> {
    const { fileSystem, directory, builder } = this.#options;
    const file = await fileSystem.open(`${directory}/${segment.name}`, "read");
    try {
      const sizeBytes = await file.size();
      builder.report.provenSequence = Math.max(builder.report.provenSequence, segment.base - 1);
      const reading = await readSegmentHeader(file);
      if (reading.header !== null) assertReadableVersion(reading.header, segment.name);
      if (reading.header === null || reading.header.base !== segment.base || sizeBytes < SEGMENT_HEADER_BYTES) {
        builder.report.bytes += sizeBytes;
        return await this.#unreadableSegment(segment, file, sizeBytes, nextBase);
      }
      if (reading.damagedCopy !== null) this.#headerCopyDamaged(segment.name, reading.damagedCopy);
      return await this.#readableSegment(segment, file, sizeBytes, reading.header.salt, nextBase);
    } finally {
      await file.close();
    }
  }

  async #unreadableSegment(
    segment: Segment,
    file: StoreFile,
    sizeBytes: number,
    nextBase: number | undefined,
  ): Promise<NewestSegment> {
    const { name, base } = segment;
    const gap = { offset: 0, length: sizeBytes, reason: "the segment's header" };
    const kept = sizeBytes === 0 ? null : await this.#options.quarantine(name, file, 0, sizeBytes);
    this.find("segment_unreadable", name, gap, base, nextBase === undefined ? null : nextBase - 1, kept);
    // No number that may have been used in it is used again.
    let nextSequence = nextBase ?? baseBehindUnknownEnd(base, sizeBytes);
    const { evidence } = this.#options;
    if (nextBase === undefined && evidence && evidence.sequence >= base) {
      this.#endLost(name, 0, evidence, base, evidence.sequence, `what is readable ends at ${base - 1}`);
      nextSequence = Math.max(nextSequence, evidence.sequence + 1);
    }
    const known = nextBase === undefined ? Math.max(base - 1, evidence?.sequence ?? 0) : nextBase - 1;
    this.#options.builder.report.lastSequence = known;
    this.#options.builder.report.provenSequence = known;
    const tail = {
      offset: 0,
      endOffset: 0,
      firstSequence: nextSequence,
      lastSequence: nextSequence - 1,
      onlyMarks: true,
    };
    const claimedSequence = nextSequence - 1;
    return {
      name,
      base,
      salt: null,
      sizeBytes,
      tail,
      isContinuable: false,
      claimedSequence,
      lastDataSequence: claimedSequence,
    };
  }

  async #readableSegment(
    segment: Segment,
    file: StoreFile,
    sizeBytes: number,
    salt: number,
    nextBase: number | undefined,
  ): Promise<NewestSegment> {
    const { name, base } = segment;
    const { builder, understandsType, quarantine, evidence } = this.#options;
    const { report } = builder;
    const endSequence = nextBase ?? Number.POSITIVE_INFINITY;
    const scan = { file, name, base, salt, endSequence, sizeBytes, understandsType };
    report.bytes += sizeBytes;
    const isNewest = nextBase === undefined;
    const { claimed, last } = isNewest ? await claimedIn(scanSegment(scan), base - 1) : { claimed: 0, last: 0 };
    const isUnreadable = this.#options.isUnreadable?.(`${this.#options.directory}/${name}`) === true;
    /** By the log itself, and by all that is known. */
    const provenByLog = isNewest ? Math.max(claimed, base - 1, isUnreadable ? last : 0) : nextBase - 1;
    const proven = isNewest ? Math.max(provenByLog, evidence?.sequence ?? 0) : provenByLog;

    let expected = base;
    let gap: Gap | null = null;
    let hasOpening = false;
    let isContinuable = true;
    let acceptedEnd = SEGMENT_HEADER_BYTES;
    let tail: LogTail | null = null;
    let cut: { gap: Gap; recoveryCase: RecoveryCase } | null = null;

    for await (const item of scanSegment(scan)) {
      if (item.kind === "opening") {
        hasOpening = true;
        acceptedEnd = item.offset + item.bytes.length;
        report.records++;
        // The largest time of all before it, or less: where the clock was reset (reset-clock.ts), times begin anew with a segment.
        report.lastTimeUs = item.timeUs;
        await this.#deliver(segment, item.bytes, item.offset, base, base - 1, item.timeUs);
      } else if (item.kind === "damage") {
        gap = extended(gap, item);
      } else if (item.kind === "superseded") {
        // Damage between the last record of this segment and the first superseded one is superseded too.
        const from = gap !== null && expected > proven ? gap.offset : item.offset;
        if (from !== item.offset) gap = null;
        const reason = "an earlier recovery copied it into the next segment";
        this.find("superseded", name, { offset: from, length: sizeBytes - from, reason });
        this.superseded.push({ name, sizeBytes: from });
      } else {
        const hole = item.firstSequence > expected;
        if (!hasOpening || gap !== null || hole) {
          const losesProven = !hasOpening || expected <= proven;
          const place: Gap = gap ?? {
            offset: item.offset,
            length: 0,
            reason: hole ? `sequence ${item.firstSequence} behind ${expected - 1}` : "no opening state",
          };
          if (losesProven) {
            const recoveryCase = !hasOpening ? "opening_state_damaged" : gap !== null ? "damage_proven" : "hole_proven";
            const kept = place.length === 0 ? null : await quarantine(name, file, place.offset, place.length);
            const lastLost = Math.min(item.firstSequence - 1, proven);
            if (lastLost >= expected) this.find(recoveryCase, name, place, expected, lastLost, kept);
            else this.find(recoveryCase, name, place, null, null, kept);
            hasOpening = true;
          }
          if (!losesProven || (hole && item.firstSequence - 1 > proven)) {
            const from = losesProven ? item.offset : place.offset;
            cut = {
              gap: { offset: from, length: sizeBytes - from, reason: place.reason },
              recoveryCase: gap !== null && !losesProven ? "damage_unproven" : "hole_unproven",
            };
            break;
          }
          gap = null;
        }
        tail = await this.#accept(segment, item, isNewest ? proven : Number.POSITIVE_INFINITY, tail);
        expected = item.lastSequence + 1;
        acceptedEnd = item.offset + item.bytes.length;
      }
    }
    // No crash leaves a segment without its opening state: what stood behind it may have been anything.
    const isEndUnknown = isNewest && !hasOpening;
    if (cut !== null) {
      isContinuable = false;
      this.find(cut.recoveryCase, name, cut.gap);
    } else if (gap !== null || !hasOpening || expected <= proven) {
      isContinuable = false;
      const place = gap ?? { offset: acceptedEnd, length: 0, reason: `the segment ends at ${expected - 1}` };
      if (!hasOpening || expected <= proven) {
        if (!hasOpening || gap !== null || expected <= provenByLog) {
          const recoveryCase = !hasOpening ? "opening_state_damaged" : gap !== null ? "damage_proven" : "hole_proven";
          const kept = place.length === 0 ? null : await quarantine(name, file, place.offset, place.length);
          if (isEndUnknown) this.find(recoveryCase, name, place, expected, null, kept);
          else if (expected <= provenByLog) this.find(recoveryCase, name, place, expected, provenByLog, kept);
          else this.find(recoveryCase, name, place, null, null, kept);
        }
        if (evidence && proven > provenByLog && expected <= proven) {
          const firstLost = Math.max(expected, provenByLog + 1);
          this.#endLost(name, sizeBytes, evidence, firstLost, proven, `the log ends at ${expected - 1}`);
        }
      } else if (!isNewest) {
        // Everything up to the next segment is there: what follows is what an earlier recovery left behind.
        this.find("superseded", name, place);
        this.superseded.push({ name, sizeBytes: place.offset });
      } else {
        this.find("damage_unproven", name, { ...place, length: sizeBytes - place.offset });
      }
    }
    const lastSequence = Math.max(expected - 1, proven);
    report.lastSequence = lastSequence;
    report.provenSequence = proven;
    const nextSequence = isEndUnknown
      ? Math.max(baseBehindUnknownEnd(base, sizeBytes), lastSequence + 1)
      : lastSequence + 1;
    tail ??= {
      offset: acceptedEnd,
      endOffset: acceptedEnd,
      firstSequence: nextSequence,
      lastSequence: nextSequence - 1,
      onlyMarks: true,
    };
    const claimedSequence = Math.max(claimed, base - 1);
    const evident = isNewest ? Math.min(evidence?.sequence ?? 0, lastSequence) : 0;
    const lastDataSequence = Math.max(claimedSequence, evident);
    return { name, base, salt, sizeBytes, tail, isContinuable, claimedSequence, lastDataSequence };
  }

  /** Delivers a run, but for its part behind `proven` when recovery delivers that itself; gives the tail so far. */
  async #accept(segment: Segment, run: RecordRun, proven: number, tail: LogTail | null): Promise<LogTail | null> {
    const { builder, deliversTail } = this.#options;
    const { report } = builder;
    report.lastTimeUs = Math.max(report.lastTimeUs, run.lastTimeUs);
    const whole = { offset: run.bytes.length, lastTimeUs: run.lastTimeUs };
    const { offset: split, lastTimeUs } = run.lastSequence <= proven ? whole : splitBehind(run.bytes, proven);
    report.records += run.count;
    if (deliversTail || split === run.bytes.length) {
      await this.#deliver(segment, run.bytes, run.offset, run.firstSequence, run.lastSequence, run.lastTimeUs);
    } else if (split > 0) {
      await this.#deliver(segment, run.bytes.subarray(0, split), run.offset, run.firstSequence, proven, lastTimeUs);
    }
    if (split === run.bytes.length) return tail;
    const onlyMarks = run.onlyMarks || isOnlyMarks(run.bytes.subarray(split));
    return {
      offset: tail?.offset ?? run.offset + split,
      endOffset: run.offset + run.bytes.length,
      firstSequence: tail?.firstSequence ?? Math.max(run.firstSequence, proven + 1),
      lastSequence: run.lastSequence,
      onlyMarks: (tail?.onlyMarks ?? true) && onlyMarks,
    };
  }

  async #deliver(
    segment: Segment,
    bytes: Uint8Array,
    offset: number,
    firstSequence: number,
    lastSequence: number,
    lastTimeUs: number,
  ): Promise<void> {
    await this.#options.onRecords({
      bytes,
      segmentBase: segment.base,
      offset,
      firstSequence,
      lastSequence,
      lastTimeUs,
    });
  }

  find(
    recoveryCase: RecoveryCase,
    segment: string,
    place: Gap,
    firstLost: number | null = null,
    lastLost: number | null = null,
    quarantineFile: string | null = null,
  ): void {
    const { builder } = this.#options;
    builder.decided(recoveryCase);
    const code = RECOVERY_CASES[recoveryCase].finding;
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
}

function extended(gap: Gap | null, by: Gap): Gap {
  if (gap === null) return { offset: by.offset, length: by.length, reason: by.reason };
  return { ...gap, length: by.offset + by.length - gap.offset };
}

/** The largest number that any intact header of a segment claims to be durable, and the last one of its whole records. */
async function claimedIn(items: AsyncIterable<ScanItem>, atLeast: number): Promise<{ claimed: number; last: number }> {
  let claimed = atLeast;
  let last = 0;
  for await (const item of items) {
    if (item.kind !== "superseded" && item.durableUpTo > claimed) claimed = item.durableUpTo;
    if (item.kind === "records") last = item.lastSequence;
  }
  return { claimed, last };
}

/** Where in the bytes of whole records the first one with a number above `sequence` starts, and the largest time before it. */
function splitBehind(bytes: Uint8Array, sequence: number): { offset: number; lastTimeUs: number } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let offset = 0;
  let lastTimeUs = 0;
  while (offset < bytes.length) {
    const header = readRecordHeader(view, offset);
    if (header.sequence > sequence) break;
    lastTimeUs = Math.max(lastTimeUs, header.timeUs);
    offset += recordLength(header.indexLength, header.bodyLength);
  }
  return { offset, lastTimeUs };
}

function isOnlyMarks(bytes: Uint8Array): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.length; ) {
    const header = readRecordHeader(view, at);
    if (header.type !== LOG_RECORD_TYPE.mark) return false;
    at += recordLength(header.indexLength, header.bodyLength);
  }
  return true;
}
