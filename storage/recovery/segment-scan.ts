import type { StoreFile } from "../disk/file-system-interface.js";
import { readFully } from "../disk/whole-files.js";
import { isOwnRecord } from "../log/committed-batch.js";
import {
  isContentIntact,
  isRecordHeader,
  LOG_RECORD_TYPE,
  MAXIMUM_SEQUENCE,
  RECORD_ALIGNMENT_BYTES,
  RECORD_FLAG_MUST_UNDERSTAND,
  RECORD_HEADER_BYTES,
  RECORD_VERSION,
  type RecordHeader,
  readRecordHeader,
  recordLength,
} from "../log/record-format.js";
import { SEGMENT_HEADER_BYTES } from "../log/segment.js";
import { isKnownRecordType } from "../records/record-index.js";
import { StorageError } from "../storage-error.js";

/**
 * What a scan finds, in order of offset. Bytes are valid until the next item is asked for.
 * - `opening`: the opening state at the segment's start.
 * - `records`: a batch of whole records without a gap in their sequence numbers, about one window of the file at most.
 * - `damage`: bytes that hold no valid record of this place. `sequence` is known when only the content is damaged or cut.
 * - `superseded`: everything from the first record that the next segment has, to the end of the file.
 */
export type ScanItem =
  | { kind: "opening"; offset: number; bytes: Uint8Array; durableUpTo: number; timeUs: number }
  | RecordBatch
  | Damage
  | { kind: "superseded"; offset: number; length: number };

interface Damage {
  kind: "damage";
  offset: number;
  length: number;
  reason: string;
  sequence: number | null;
  durableUpTo: number;
}

export interface RecordBatch {
  kind: "records";
  offset: number;
  bytes: Uint8Array;
  firstSequence: number;
  lastSequence: number;
  count: number;
  /** The largest durable_up_to of these records. */
  durableUpTo: number;
  lastTimeUs: number;
  /** True when all these records are marks. */
  onlyMarks: boolean;
}

export interface ScanOptions {
  file: StoreFile;
  name: string;
  base: number;
  salt: number;
  /** The next segment's base. Records from this sequence number on are superseded here. */
  endSequence: number;
  /** Bytes of the file to scan. */
  sizeBytes: number;
  /** Offset of the record to begin at; default: after the segment's header. */
  fromOffset?: number;
  /** The sequence number before that record; default: the base less one. */
  afterSequence?: number;
  chunkBytes?: number;
}

/** Large enough that the cost of a read does not show, small enough that the memory does not matter. */
const CHUNK_BYTES = 1024 * 1024;

/** A part of the file in memory. */
class Window {
  bytes: Uint8Array;
  view: DataView;
  offset: number;
  length = 0;
  readonly #file: StoreFile;
  readonly #sizeBytes: number;

  constructor(file: StoreFile, sizeBytes: number, offset: number, capacity: number) {
    this.#file = file;
    this.#sizeBytes = sizeBytes;
    this.offset = offset;
    this.bytes = new Uint8Array(Math.max(RECORD_HEADER_BYTES, Math.min(capacity, sizeBytes - offset)));
    this.view = new DataView(this.bytes.buffer);
  }

  get end(): number {
    return this.offset + this.length;
  }

  /** Moves the window to `offset` and fills it, with at least `need` bytes or what the file has of them. */
  async load(offset: number, need: number): Promise<void> {
    const kept = Math.max(0, this.end - offset);
    const from = this.length - kept;
    if (need > this.bytes.length) {
      const grown = new Uint8Array(need);
      grown.set(this.bytes.subarray(from, this.length));
      this.bytes = grown;
      this.view = new DataView(grown.buffer);
    } else if (from > 0 && kept > 0) {
      this.bytes.copyWithin(0, from, this.length);
    }
    this.offset = offset;
    this.length = kept;
    const room = Math.min(this.bytes.length - kept, this.#sizeBytes - this.end);
    if (room > 0) this.length += await readFully(this.#file, this.bytes.subarray(kept, kept + room), this.end);
  }
}

/** Reads a segment from start to end and verifies every byte after its header. The largest record bounds the memory. */
export async function* scanSegment(options: ScanOptions): AsyncGenerator<ScanItem, void, undefined> {
  const { file, base, salt, sizeBytes } = options;
  let position = options.fromOffset ?? SEGMENT_HEADER_BYTES;
  let lastSequence = options.afterSequence ?? base - 1;
  const window = new Window(file, sizeBytes, position, options.chunkBytes ?? CHUNK_BYTES);
  let need = RECORD_HEADER_BYTES;

  while (position < sizeBytes) {
    await window.load(position, need);
    if (window.length < Math.min(need, sizeBytes - position)) {
      yield damage(position, sizeBytes - position, "the file became shorter while it was being read", null);
      return;
    }
    need = RECORD_HEADER_BYTES;
    const batch = emptyBatch(window, position, lastSequence);
    let stop: Exclude<ScanItem, RecordBatch> | null = null;
    while (position < window.end) {
      const step = readStep(options, window, position, lastSequence);
      if (step.kind === "partial") {
        need = step.needBytes;
        break;
      }
      if (step.kind !== "record") {
        stop = step;
        break;
      }
      const { header, length } = step;
      if (batch.count === 0) batch.firstSequence = header.sequence;
      else if (header.sequence !== lastSequence + 1) break;
      lastSequence = header.sequence;
      position += length;
      batch.count++;
      if (header.durableUpTo > batch.durableUpTo) batch.durableUpTo = header.durableUpTo;
      if (header.timeUs > batch.lastTimeUs) batch.lastTimeUs = header.timeUs;
      if (header.type !== LOG_RECORD_TYPE.mark) batch.onlyMarks = false;
    }
    if (batch.count > 0) {
      batch.bytes = window.bytes.subarray(batch.offset - window.offset, position - window.offset);
      batch.lastSequence = lastSequence;
      yield batch;
    }
    if (stop === null) continue;
    if (stop.kind === "damage" && stop.length === 0) {
      stop.length = (await nextHeader(window, position, sizeBytes, salt)) - position;
    }
    position += stop.kind === "opening" ? stop.bytes.length : stop.length;
    yield stop;
  }
}

function emptyBatch({ bytes }: Window, offset: number, lastSequence: number): RecordBatch {
  return {
    kind: "records",
    offset,
    bytes,
    firstSequence: lastSequence + 1,
    lastSequence,
    count: 0,
    durableUpTo: 0,
    lastTimeUs: 0,
    onlyMarks: true,
  };
}

/**
 * What is at a position of the window:
 * - `record`: a whole record that may follow `lastSequence`; `length` is its bytes.
 * - `partial`: the window holds only a part of the record; it needs so many bytes.
 * - any other item ends the batch. Damage of length 0 reaches to the next intact header.
 */
type Step =
  | { kind: "record"; header: RecordHeader; length: number }
  | { kind: "partial"; needBytes: number }
  | Exclude<ScanItem, RecordBatch>;

function readStep(options: ScanOptions, window: Window, position: number, lastSequence: number): Step {
  const { name, salt, endSequence, sizeBytes } = options;
  const at = position - window.offset;
  if (position + RECORD_HEADER_BYTES > window.end) {
    if (window.end < sizeBytes) return { kind: "partial", needBytes: RECORD_HEADER_BYTES };
    return damage(position, sizeBytes - position, "the bytes are fewer than a record's header", null);
  }
  if (!isRecordHeader(window.bytes, window.view, at, salt, position)) {
    return damage(position, 0, "no valid record begins here", null);
  }
  const header = readRecordHeader(window.view, at);
  if (!isPossible(header)) return damage(position, 0, "the header has values that the log never writes", null);
  assertReadable(header, name, position);
  const length = recordLength(header.indexLength, header.bodyLength);
  if (position + length > sizeBytes) {
    return damage(position, sizeBytes - position, "the file ends within the record", header);
  }
  if (position + length > window.end) return { kind: "partial", needBytes: length };
  if (!isContentIntact(window.bytes, at, header)) {
    return damage(position, length, "the record's content does not match its CRC", header);
  }
  if (header.type === LOG_RECORD_TYPE.openingState && position === SEGMENT_HEADER_BYTES) {
    const bytes = window.bytes.subarray(at, at + length);
    return { kind: "opening", offset: position, bytes, durableUpTo: header.durableUpTo, timeUs: header.timeUs };
  }
  const { sequence } = header;
  if (sequence <= lastSequence || header.type === LOG_RECORD_TYPE.openingState) {
    return damage(position, length, `record ${sequence} follows record ${lastSequence}`, null);
  }
  if (sequence >= endSequence) return { kind: "superseded", offset: position, length: sizeBytes - position };
  return { kind: "record", header, length };
}

/** The next offset after `position`, in steps of 8, with an intact header for that place; else the file's size. */
async function nextHeader(window: Window, position: number, sizeBytes: number, salt: number): Promise<number> {
  let candidate = position + RECORD_ALIGNMENT_BYTES;
  while (candidate + RECORD_HEADER_BYTES <= sizeBytes) {
    if (candidate + RECORD_HEADER_BYTES > window.end) {
      await window.load(candidate, RECORD_HEADER_BYTES);
      if (candidate + RECORD_HEADER_BYTES > window.end) break;
    }
    const last = window.end - RECORD_HEADER_BYTES;
    while (candidate <= last) {
      if (isRecordHeader(window.bytes, window.view, candidate - window.offset, salt, candidate)) return candidate;
      candidate += RECORD_ALIGNMENT_BYTES;
    }
  }
  return sizeBytes;
}

/**
 * Whether the log can have written this header. A record claims only what was durable before it was written. Without this check, a header with a
 * right CRC could make recovery take all sequence numbers up to its claim for lost, and never use them.
 */
function isPossible({ sequence, durableUpTo }: RecordHeader): boolean {
  return sequence <= MAXIMUM_SEQUENCE && durableUpTo <= sequence;
}

function damage(offset: number, length: number, reason: string, header: RecordHeader | null): Damage {
  return {
    kind: "damage",
    offset,
    length,
    reason,
    sequence: header?.sequence ?? null,
    durableUpTo: header?.durableUpTo ?? 0,
  };
}

function assertReadable(header: RecordHeader, segment: string, offset: number): void {
  if (header.version !== RECORD_VERSION) {
    throw new StorageError(
      "format_unsupported",
      `segment ${segment}: the record at ${offset} has version ${header.version}, but this release reads version ` +
        `${RECORD_VERSION}: open the store with the release that wrote it, or a newer one`,
      { segment, offset, version: header.version, readable: RECORD_VERSION },
    );
  }
  const { type } = header;
  const mustUnderstand = (header.flags & RECORD_FLAG_MUST_UNDERSTAND) !== 0;
  if (!mustUnderstand || isOwnRecord(type) || isKnownRecordType(type)) return;
  throw new StorageError(
    "record_type_unsupported",
    `segment ${segment}: the record at ${offset} has type ${type}, which this release does not know and must not skip: ` +
      "open the store with the release that wrote it, or a newer one",
    { segment, offset, type },
  );
}
