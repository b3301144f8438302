/**
 * Compaction of one segment: its records that are still needed, in a file of their own, which then takes the segment's name. What is
 * needed is the owner's to judge; here is how it is written.
 *
 * The new file has the same base and opening state, and the kept records with their numbers, times and order, under a new salt. Each
 * stretch of numbers that were dropped is one record (dropped-record.ts). Every number from the base to the next segment's is covered as
 * before, so that recovery is as strict with it as with any other.
 *
 * The old file is read twice: to verify every byte of it and to judge, then to copy. A segment with any damage is never rewritten:
 * it is evidence, and the quarantine and the log's lines refer to it.
 */

import type { FileSystem, StoreFile } from "../disk/file-system-interface.js";
import { TEMPORARY_SUFFIX, writeFully } from "../disk/whole-files.js";
import { forEachRecord, isOwnRecord, type LogRecord, type RecordLocation } from "../log/log-batch.js";
import { LOG_RECORD_TYPE, sealRecordHeader } from "../log/record-format.js";
import { encodeSegmentHeader, readSegmentHeader, SEGMENT_FORMAT_VERSION, segmentName } from "../log/segment.js";
import { type ScanItem, scanSegment } from "../recovery/segment-scan.js";
import { StorageError } from "../storage-error.js";
import { encodeDroppedRecord } from "./dropped-record.js";

/** Read, verified and written in one go, between two turns of whoever else needs the thread or the disk. */
const SLICE_BYTES = 256 * 1024;
/** Written between two syncs: one sync of a whole segment would hold up the log's own. */
const SYNC_BYTES = 4 * 1024 * 1024;

/**
 * What becomes of a record: it stays, it goes, or it goes if later records of the same segment, those listed as their `subjects` too, take
 * each of its own. `mayGo` false: it stays, and takes its subjects from earlier ones.
 */
export type Verdict = "stays" | "goes" | { subjects: readonly string[]; mayGo: boolean };

/** Who owns the records of the log. */
export interface SegmentOwner {
  understandsType(type: number): boolean;
  /** Of a record of the owner's; marks go, and dropped stretches join others, without being asked about. */
  judge(record: LogRecord): Verdict;
  /** Begins a stretch of dropped records. */
  beginStretch(): {
    /** One more of them, in order; also a dropped stretch of before. */
    add(record: LogRecord): void;
    /** What they leave behind: the body of the stretch's record. */
    body(): Uint8Array;
  };
  /** The record stays, and lies there in the new file. */
  kept(record: LogRecord, location: RecordLocation): void;
}

export interface RewriteOptions {
  fileSystem: FileSystem;
  /** Folder of the segments. */
  directory: string;
  base: number;
  /** Of the next segment, whose name says that this one is complete and durable. */
  nextBase: number;
  salt: number;
  owner: SegmentOwner;
  /** Less is not worth it: with less than so many bytes to drop nothing is written. */
  minimumDroppedBytes: number;
  /** Awaited between two slices; what it rejects with ends the rewriting. `bytes` are to be written next. */
  giveWay(bytes: number): Promise<void>;
}

export interface RewrittenSegment {
  path: string;
  /** Null when it was not worth it: nothing was written. */
  temporaryPath: string | null;
  bytesBefore: number;
  bytesAfter: number;
  recordsDropped: number;
  /** Of records of the owner's that go, or would. */
  droppedBytes: number;
}

/**
 * Writes the segment anew, durably, beside the old file: a rename of `temporaryPath` to `path` gives it the segment's name. When it fails
 * nothing is left of it, unless the disk refuses that too.
 *
 * @throws StorageError `record_damaged`: it is not as the log wrote it; FileSystemError; what `giveWay` rejects with
 */
export async function rewriteSegment(options: RewriteOptions): Promise<RewrittenSegment> {
  const { fileSystem, directory, base } = options;
  const file = await fileSystem.open(`${directory}/${segmentName(base)}`, "read");
  try {
    return await new SegmentRewriting(options, file, await file.size()).run();
  } finally {
    await file.close();
  }
}

/** A file that cannot be removed now goes at the next start. */
export async function removeTemporary(fileSystem: FileSystem, path: string): Promise<void> {
  await fileSystem.unlink(path).catch(() => {});
}

interface Stretch {
  firstSequence: number;
  timeUs: number;
  account: ReturnType<SegmentOwner["beginStretch"]>;
}

/** Records in the order of the file: whether each goes. */
class Fates {
  #goes = new Uint8Array(4096);
  length = 0;

  push(goes: boolean): void {
    if (this.length === this.#goes.length) {
      const grown = new Uint8Array(2 * this.length);
      grown.set(this.#goes);
      this.#goes = grown;
    }
    this.#goes[this.length++] = goes ? 1 : 0;
  }

  set(at: number, goes: boolean): void {
    this.#goes[at] = goes ? 1 : 0;
  }

  goes(at: number): boolean {
    return at < this.length && this.#goes[at] === 1;
  }
}

class SegmentRewriting {
  readonly #options: RewriteOptions;
  readonly #name: string;
  readonly #file: StoreFile;
  readonly #sizeBytes: number;
  readonly #fates = new Fates();
  #salt = 0;
  #recordsDropped = 0;
  #droppedBytes = 0;

  constructor(options: RewriteOptions, file: StoreFile, sizeBytes: number) {
    this.#options = options;
    this.#name = segmentName(options.base);
    this.#file = file;
    this.#sizeBytes = sizeBytes;
  }

  async run(): Promise<RewrittenSegment> {
    await this.#readHeader();
    await this.#judgeAll();
    const path = `${this.#options.directory}/${this.#name}`;
    const found = {
      path,
      bytesBefore: this.#sizeBytes,
      recordsDropped: this.#recordsDropped,
      droppedBytes: this.#droppedBytes,
    };
    if (this.#droppedBytes < this.#options.minimumDroppedBytes) {
      return { ...found, temporaryPath: null, bytesAfter: this.#sizeBytes };
    }
    const temporaryPath = `${path}${TEMPORARY_SUFFIX}`;
    try {
      return { ...found, temporaryPath, bytesAfter: await this.#write(temporaryPath) };
    } catch (error) {
      await removeTemporary(this.#options.fileSystem, temporaryPath);
      throw error;
    }
  }

  async #readHeader(): Promise<void> {
    const { header, damagedCopy } = await readSegmentHeader(this.#file);
    if (header === null || damagedCopy !== null) this.#damaged("its header is damaged");
    if (header.base !== this.#options.base || header.version !== SEGMENT_FORMAT_VERSION) {
      this.#damaged(`its header says base ${header.base}, version ${header.version}`);
    }
    this.#salt = header.salt;
  }

  /** The segment's opening state and records, every byte of which is as the log wrote it. */
  async *#items(): AsyncGenerator<Extract<ScanItem, { bytes: Uint8Array }>> {
    const { base, nextBase, owner } = this.#options;
    const scan = scanSegment({
      file: this.#file,
      name: this.#name,
      base,
      salt: this.#salt,
      endSequence: nextBase,
      sizeBytes: this.#sizeBytes,
      understandsType: (type) => owner.understandsType(type),
      chunkBytes: SLICE_BYTES,
    });
    let expected = base;
    let hasOpening = false;
    for await (const item of scan) {
      if (item.kind === "damage") this.#damaged(item.reason, item.offset);
      if (item.kind === "superseded") this.#damaged("records of the next segment", item.offset);
      if (item.kind === "opening") {
        hasOpening = true;
      } else {
        if (!hasOpening) this.#damaged("it has no opening state");
        if (item.firstSequence !== expected)
          this.#damaged(`sequence ${item.firstSequence} behind ${expected - 1}`, item.offset);
        expected = item.lastSequence + 1;
      }
      yield item;
    }
    if (expected !== nextBase) this.#damaged(`it ends at ${expected - 1}, the next one begins at ${nextBase}`);
  }

  #damaged(reason: string, offset = 0): never {
    const params = { segment: this.#name, offset };
    throw new StorageError("record_damaged", `segment ${this.#name}, offset ${offset}: ${reason}`, params);
  }

  async #judgeAll(): Promise<void> {
    const fates = this.#fates;
    /** By subject: which record has it last; by record: how many subjects it has still. */
    const holders = new Map<string, number>();
    const held = new Map<number, { subjects: number; length: number }>();
    const drop = (length: number): void => {
      this.#recordsDropped++;
      this.#droppedBytes += length;
    };
    const judge = (record: LogRecord, { offset, length }: RecordLocation): void => {
      if (record.type === LOG_RECORD_TYPE.mark || record.type === LOG_RECORD_TYPE.dropped) {
        fates.push(true);
        return;
      }
      const verdict = this.#judge(record, offset);
      if (verdict === "goes") drop(length);
      fates.push(verdict === "goes");
      if (typeof verdict === "string") return;
      const at = fates.length - 1;
      if (verdict.mayGo) held.set(at, { subjects: new Set(verdict.subjects).size, length });
      for (const subject of new Set(verdict.subjects)) {
        const before = holders.get(subject);
        holders.set(subject, at);
        const loser = before === undefined ? undefined : held.get(before);
        if (before === undefined || loser === undefined || --loser.subjects > 0) continue;
        fates.set(before, true);
        drop(loser.length);
      }
    };
    for await (const item of this.#items()) {
      if (item.kind === "records") forEachRecord({ ...item, segmentBase: this.#options.base }, judge);
      await this.#options.giveWay(0);
    }
  }

  /** A record that its owner cannot read is damage, whatever its CRC says. */
  #judge(record: LogRecord, offset: number): Verdict {
    try {
      return this.#options.owner.judge(record);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return this.#damaged(`sequence ${record.sequence}: ${reason}`, offset);
    }
  }

  /** @returns the new file's size */
  async #write(path: string): Promise<number> {
    const { fileSystem, giveWay } = this.#options;
    const file = await fileSystem.open(path, "createOrUpdate");
    const slices = new SliceWriter(this.#options, this.#fates);
    let unsyncedBytes = 0;
    try {
      await file.truncate(0);
      for await (const item of this.#items()) {
        const at = slices.endOffset;
        const bytes = slices.take(item);
        await giveWay(bytes.length);
        if (bytes.length === 0) continue;
        await writeFully(file, bytes, at, path);
        unsyncedBytes += bytes.length;
        if (unsyncedBytes < SYNC_BYTES) continue;
        await file.datasync();
        unsyncedBytes = 0;
      }
      const at = slices.endOffset;
      const rest = slices.finish();
      if (rest.length > 0) await writeFully(file, rest, at, path);
      await file.datasync();
    } finally {
      await file.close();
    }
    return slices.endOffset;
  }
}

/** Makes the bytes of the new file, slice by slice. */
class SliceWriter {
  readonly #options: RewriteOptions;
  readonly #fates: Fates;
  /** Behind what was given out, and what is about to be. */
  endOffset = 0;
  #records = 0;
  #lastSequence: number;
  #stretch: Stretch | null = null;
  #parts: Uint8Array[] = [];

  constructor(options: RewriteOptions, fates: Fates) {
    this.#options = options;
    this.#fates = fates;
    this.#lastSequence = options.base - 1;
  }

  take(item: Extract<ScanItem, { bytes: Uint8Array }>): Uint8Array {
    const { base, salt } = this.#options;
    if (item.kind === "opening") {
      this.#part(encodeSegmentHeader({ version: SEGMENT_FORMAT_VERSION, salt, base }));
      this.#copy(item.bytes);
    } else {
      forEachRecord({ ...item, segmentBase: base }, (record, { offset, length }) => {
        const at = offset - item.offset;
        this.#record(record, item.bytes.subarray(at, at + length));
      });
    }
    return this.#given();
  }

  /** What is left at the end. */
  finish(): Uint8Array {
    this.#endStretch();
    return this.#given();
  }

  #record(record: LogRecord, bytes: Uint8Array): void {
    const { base, owner } = this.#options;
    const at = this.#records++;
    // In place of a single record of the log's own a stretch would save nothing.
    const isAlone = this.#stretch === null && !this.#fates.goes(at + 1);
    if (this.#fates.goes(at) && !(isAlone && isOwnRecord(record.type))) {
      this.#stretch ??= { firstSequence: this.#lastSequence + 1, timeUs: 0, account: owner.beginStretch() };
      this.#stretch.timeUs = Math.max(this.#stretch.timeUs, record.timeUs);
      this.#stretch.account.add(record);
    } else {
      this.#endStretch();
      const offset = this.endOffset;
      this.#copy(bytes);
      owner.kept(record, { segmentBase: base, offset, length: bytes.length });
    }
    this.#lastSequence = record.sequence;
  }

  #endStretch(): void {
    const stretch = this.#stretch;
    if (stretch === null) return;
    this.#stretch = null;
    const { firstSequence, timeUs, account } = stretch;
    const record = {
      firstSequence,
      lastSequence: this.#lastSequence,
      durableUpTo: this.#options.nextBase - 1,
      timeUs,
      body: account.body(),
    };
    this.#part(encodeDroppedRecord(record, this.#options.salt, this.endOffset));
  }

  /** Adds a record as it is, sealed for its new place. */
  #copy(bytes: Uint8Array): void {
    const copy = bytes.slice();
    sealRecordHeader(copy, new DataView(copy.buffer), 0, this.#options.salt, this.endOffset);
    this.#part(copy);
  }

  #part(bytes: Uint8Array): void {
    this.#parts.push(bytes);
    this.endOffset += bytes.length;
  }

  #given(): Uint8Array {
    const parts = this.#parts;
    this.#parts = [];
    return Buffer.concat(parts);
  }
}
