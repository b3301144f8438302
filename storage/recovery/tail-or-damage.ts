import type { StoreFile } from "../disk/file-system-interface.js";
import { LOG_RECORD_TYPE, readRecordHeader, recordLength } from "../log/record-format.js";
import { baseBehindUnknownEnd, SEGMENT_HEADER_BYTES } from "../log/segment.js";
import type { RecoveryCase } from "./recovery-cases.js";
import { type RecordBatch, type ScanItem, scanSegment } from "./segment-scan.js";
import type { DamagedPlace, LogTail, LogWalk, NewestSegment } from "./walked-log.js";

export interface SegmentWalkOptions {
  walk: LogWalk;
  file: StoreFile;
  name: string;
  base: number;
  salt: number;
  sizeBytes: number;
  /** Undefined for the newest segment. */
  nextBase: number | undefined;
}

/** Reads one segment whose header is intact, delivers its records, and decides for each damaged place whether it is a torn tail or damage. */
export class SegmentWalk {
  readonly #options: SegmentWalkOptions;
  readonly #isNewest: boolean;
  /** The largest sequence number that a header claims to be durable. */
  #claimed = 0;
  /** The last sequence number that is proven: by the log itself, and by the log and other files together. */
  #provenByLog = 0;
  #proven = 0;
  /** The sequence number of the next record. */
  #expected: number;
  /** Damage that no record followed so far. */
  #pendingDamage: DamagedPlace | null = null;
  #hasOpening = false;
  #isContinuable = true;
  /** Offset after the last record that counts. */
  #acceptedEnd = SEGMENT_HEADER_BYTES;
  #tail: LogTail | null = null;
  /** Everything from here on does not count. */
  #cut: { place: DamagedPlace; recoveryCase: RecoveryCase } | null = null;

  constructor(options: SegmentWalkOptions) {
    this.#options = options;
    this.#isNewest = options.nextBase === undefined;
    this.#expected = options.base;
  }

  async read(): Promise<NewestSegment> {
    const { walk, file, name, base, salt, sizeBytes, nextBase } = this.#options;
    const endSequence = nextBase ?? Number.POSITIVE_INFINITY;
    const scan = { file, name, base, salt, endSequence, sizeBytes };
    walk.options.builder.report.bytes += sizeBytes;
    if (nextBase === undefined) await this.#learnProven(scanSegment(scan));
    else this.#proven = this.#provenByLog = nextBase - 1;
    for await (const item of scanSegment(scan)) {
      if (item.kind === "opening") await this.#opening(item);
      else if (item.kind === "damage") this.#pendingDamage = extended(this.#pendingDamage, item);
      else if (item.kind === "superseded") this.#superseded(item.offset);
      else if (!(await this.#records(item))) break;
    }
    await this.#end();
    return this.#result();
  }

  /** Looks up to which sequence number the newest segment is proven. Damage after that is a torn tail. */
  async #learnProven(items: AsyncIterable<ScanItem>): Promise<void> {
    const { walk, base, name } = this.#options;
    const { isUnreadable, directory, evidence } = walk.options;
    const { claimed, last } = await claimedIn(items, base - 1);
    const lacksBytes = isUnreadable?.(`${directory}/${name}`) === true;
    this.#claimed = claimed;
    this.#provenByLog = Math.max(claimed, base - 1, lacksBytes ? last : 0);
    this.#proven = Math.max(this.#provenByLog, evidence?.sequence ?? 0);
  }

  async #opening({ bytes, offset, timeUs }: Extract<ScanItem, { kind: "opening" }>): Promise<void> {
    const { walk, base } = this.#options;
    const { report } = walk.options.builder;
    this.#hasOpening = true;
    this.#acceptedEnd = offset + bytes.length;
    report.records++;
    // The largest time of all records before it. It is less after a reset of the clock (reset-clock.ts): from that
    // segment on, times begin anew.
    report.lastTimeUs = timeUs;
    await this.#deliver({ bytes, offset, firstSequence: base, lastSequence: base - 1, lastTimeUs: timeUs });
  }

  #superseded(offset: number): void {
    const { walk, name, sizeBytes } = this.#options;
    // Damage between the last record of this segment and the first superseded one is superseded too.
    const from = this.#pendingDamage !== null && this.#expected > this.#proven ? this.#pendingDamage.offset : offset;
    if (from !== offset) this.#pendingDamage = null;
    const reason = "an earlier recovery copied it into the next segment";
    walk.find("superseded", name, { offset: from, length: sizeBytes - from, reason });
    walk.superseded.push({ name, sizeBytes: from });
  }

  /** @returns false when these records and all after them do not count */
  async #records(batch: RecordBatch): Promise<boolean> {
    const hasGap = batch.firstSequence > this.#expected;
    if (!this.#hasOpening || this.#pendingDamage !== null || hasGap) {
      const place: DamagedPlace = this.#pendingDamage ?? {
        offset: batch.offset,
        length: 0,
        reason: hasGap ? `sequence ${batch.firstSequence} follows ${this.#expected - 1}` : "no opening state",
      };
      const losesProven = !this.#hasOpening || this.#expected <= this.#proven;
      if (losesProven) await this.#lost(place, batch.firstSequence - 1);
      if (!losesProven || (hasGap && batch.firstSequence - 1 > this.#proven)) {
        const from = losesProven ? batch.offset : place.offset;
        this.#cut = {
          place: { offset: from, length: this.#options.sizeBytes - from, reason: place.reason },
          recoveryCase: this.#pendingDamage !== null && !losesProven ? "damage_unproven" : "gap_unproven",
        };
        return false;
      }
      this.#pendingDamage = null;
    }
    await this.#accept(batch);
    this.#expected = batch.lastSequence + 1;
    this.#acceptedEnd = batch.offset + batch.bytes.length;
    return true;
  }

  /** Proven records are gone, up to `last` at most. */
  async #lost(place: DamagedPlace, last: number): Promise<void> {
    const { walk, name } = this.#options;
    const { found, kept } = await this.#damaged(place);
    const lastLost = Math.min(last, this.#proven);
    if (lastLost >= this.#expected) walk.find(found, name, place, this.#expected, lastLost, kept);
    else walk.find(found, name, place, null, null, kept);
    this.#hasOpening = true;
  }

  /** Says which case the damage to proven records is, and keeps its bytes. */
  async #damaged({ offset, length }: DamagedPlace): Promise<{ found: RecoveryCase; kept: string | null }> {
    const { walk, name, file } = this.#options;
    const isGap = this.#pendingDamage === null;
    const found = !this.#hasOpening ? "opening_state_damaged" : isGap ? "gap_proven" : "damage_proven";
    return { found, kept: length === 0 ? null : await walk.options.quarantine(name, file, offset, length) };
  }

  /** Delivers a batch of records, and notes the tail. If recovery delivers the records that are not proven itself, these are left out here. */
  async #accept(batch: RecordBatch): Promise<void> {
    const { builder, deliversTail } = this.#options.walk.options;
    const { report } = builder;
    const proven = this.#isNewest ? this.#proven : Number.POSITIVE_INFINITY;
    report.lastTimeUs = Math.max(report.lastTimeUs, batch.lastTimeUs);
    report.records += batch.count;
    const whole = { offset: batch.bytes.length, lastTimeUs: batch.lastTimeUs };
    const { offset: split, lastTimeUs } = batch.lastSequence <= proven ? whole : splitBehind(batch.bytes, proven);
    if (deliversTail || split === batch.bytes.length) await this.#deliver(batch);
    else if (split > 0) {
      await this.#deliver({ ...batch, bytes: batch.bytes.subarray(0, split), lastSequence: proven, lastTimeUs });
    }
    if (split === batch.bytes.length) return;
    const before = this.#tail;
    this.#tail = {
      offset: before?.offset ?? batch.offset + split,
      endOffset: batch.offset + batch.bytes.length,
      firstSequence: before?.firstSequence ?? Math.max(batch.firstSequence, proven + 1),
      lastSequence: batch.lastSequence,
      onlyMarks: (before?.onlyMarks ?? true) && (batch.onlyMarks || isOnlyMarks(batch.bytes.subarray(split))),
    };
  }

  async #deliver(batch: Pick<RecordBatch, "bytes" | "offset" | "firstSequence" | "lastSequence" | "lastTimeUs">) {
    const { bytes, offset, firstSequence, lastSequence, lastTimeUs } = batch;
    const { walk, base: segmentBase } = this.#options;
    await walk.options.onRecords({ bytes, segmentBase, offset, firstSequence, lastSequence, lastTimeUs });
  }

  /** No crash leaves a segment without its opening state. So any number of records may have followed it. */
  get #isEndUnknown(): boolean {
    return this.#isNewest && !this.#hasOpening;
  }

  /** Judges what follows the last record that counts. */
  async #end(): Promise<void> {
    const { walk, name, sizeBytes } = this.#options;
    const damage = this.#pendingDamage;
    if (this.#cut !== null) {
      this.#isContinuable = false;
      walk.find(this.#cut.recoveryCase, name, this.#cut.place);
    } else if (damage !== null || !this.#hasOpening || this.#expected <= this.#proven) {
      this.#isContinuable = false;
      const reason = `the segment ends at ${this.#expected - 1}`;
      const place = damage ?? { offset: this.#acceptedEnd, length: 0, reason };
      if (!this.#hasOpening || this.#expected <= this.#proven) await this.#endsEarly(place);
      else if (this.#isNewest) walk.find("damage_unproven", name, { ...place, length: sizeBytes - place.offset });
      else {
        // Everything up to the next segment is there. The rest is what an earlier recovery did not cut off.
        walk.find("superseded", name, place);
        walk.superseded.push({ name, sizeBytes: place.offset });
      }
    }
  }

  /** The segment ends before what is proven. */
  async #endsEarly(place: DamagedPlace): Promise<void> {
    const { walk, name, sizeBytes } = this.#options;
    const { evidence } = walk.options;
    const provenByLog = this.#provenByLog;
    if (!this.#hasOpening || this.#pendingDamage !== null || this.#expected <= provenByLog) {
      const { found, kept } = await this.#damaged(place);
      if (this.#isEndUnknown) walk.find(found, name, place, this.#expected, null, kept);
      else if (this.#expected <= provenByLog) walk.find(found, name, place, this.#expected, provenByLog, kept);
      else walk.find(found, name, place, null, null, kept);
    }
    if (evidence && this.#proven > provenByLog && this.#expected <= this.#proven) {
      const firstLost = Math.max(this.#expected, provenByLog + 1);
      walk.endLost(evidence, name, sizeBytes, firstLost, this.#proven, `the log ends at ${this.#expected - 1}`);
    }
  }

  #result(): NewestSegment {
    const { walk, name, base, salt, sizeBytes } = this.#options;
    const { builder, evidence } = walk.options;
    const lastSequence = Math.max(this.#expected - 1, this.#proven);
    builder.report.lastSequence = lastSequence;
    builder.report.provenSequence = this.#proven;
    const behind = this.#isEndUnknown ? baseBehindUnknownEnd(base, sizeBytes) : 0;
    const nextSequence = Math.max(behind, lastSequence + 1);
    const end = this.#acceptedEnd;
    const numbers = { firstSequence: nextSequence, lastSequence: nextSequence - 1 };
    const tail = this.#tail ?? { offset: end, endOffset: end, ...numbers, onlyMarks: true };
    const claimedSequence = Math.max(this.#claimed, base - 1);
    const evident = this.#isNewest ? Math.min(evidence?.sequence ?? 0, lastSequence) : 0;
    const lastDataSequence = Math.max(claimedSequence, evident);
    const isContinuable = this.#isContinuable;
    return { name, base, salt, sizeBytes, tail, isContinuable, claimedSequence, lastDataSequence };
  }
}

function extended(place: DamagedPlace | null, by: DamagedPlace): DamagedPlace {
  if (place === null) return { offset: by.offset, length: by.length, reason: by.reason };
  return { ...place, length: by.offset + by.length - place.offset };
}

/**
 * The largest sequence number that any intact header of a segment claims to be durable, and the last one of its whole
 * records.
 */
async function claimedIn(items: AsyncIterable<ScanItem>, atLeast: number): Promise<{ claimed: number; last: number }> {
  let claimed = atLeast;
  let last = 0;
  for await (const item of items) {
    if (item.kind !== "superseded" && item.durableUpTo > claimed) claimed = item.durableUpTo;
    if (item.kind === "records") last = item.lastSequence;
  }
  return { claimed, last };
}

/**
 * Finds the first of the whole records in `bytes` whose sequence number is above `sequence`. Returns where it starts,
 * and the largest time of the records before it.
 */
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
