import { firstCovered } from "../compaction/dropped-record.js";
import { readFully, type StoreFile } from "../disk/file-system.js";
import { isOwnRecord } from "../log/log-batch.js";
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
import { StorageError } from "../storage-error.js";

/**
 * What a scan meets, in order of offset. Bytes are valid until the next item is asked for.
 * - `opening`: the opening state at the segment's start.
 * - `records`: whole records that cover their numbers without a hole, at most about one chunk of them.
 * - `damage`: bytes that hold no record of this place. `sequence` is known where only the content is damaged or missing.
 * - `superseded`: from the first record on that belongs to the next segment, to the end of the file.
 */
export type ScanItem =
  | { kind: "opening"; offset: number; bytes: Uint8Array; durableUpTo: number; timeUs: number }
  | RecordRun
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

export interface RecordRun {
  kind: "records";
  offset: number;
  bytes: Uint8Array;
  firstSequence: number;
  lastSequence: number;
  count: number;
  /** The largest claim and the largest time in it. */
  durableUpTo: number;
  lastTimeUs: number;
  /** True when all of them are marks. */
  onlyMarks: boolean;
}

export interface ScanOptions {
  file: StoreFile;
  name: string;
  base: number;
  salt: number;
  /** The next segment's base, from which on records here are superseded. */
  endSequence: number;
  /** Bytes to scan. */
  sizeBytes: number;
  /** Where to begin: at a record, or behind the segment's header (default). */
  fromOffset?: number;
  /** The sequence number before the record there; default: what the base says. */
  afterSequence?: number;
  understandsType(type: number): boolean;
  chunkBytes?: number;
}

/** Large enough that the cost of a read does not show, small enough to be no burden beside everything else. */
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

  /** Makes at least the next `need` bytes at `offset` available, or what the file has of them, and fills the window. */
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

/** Reads a segment from start to end, verifying every byte behind its header, in memory bounded by its largest record. */
export async function* scanSegment(options: ScanOptions): AsyncGenerator<ScanItem, void, undefined> {
  const { file, name, base, salt, endSequence, sizeBytes, understandsType } = options;
  let position = options.fromOffset ?? SEGMENT_HEADER_BYTES;
  let lastSequence = options.afterSequence ?? base - 1;
  const window = new Window(file, sizeBytes, position, options.chunkBytes ?? CHUNK_BYTES);
  let need = RECORD_HEADER_BYTES;

  while (position < sizeBytes) {
    await window.load(position, need);
    if (window.length < Math.min(need, sizeBytes - position)) {
      yield damage(position, sizeBytes - position, "the file became shorter while it was read", null);
      return;
    }
    need = RECORD_HEADER_BYTES;
    const run: RecordRun = {
      kind: "records",
      offset: position,
      bytes: window.bytes,
      firstSequence: lastSequence + 1,
      lastSequence,
      count: 0,
      durableUpTo: 0,
      lastTimeUs: 0,
      onlyMarks: true,
    };
    let stop: Exclude<ScanItem, RecordRun> | null = null;
    while (position < window.end) {
      const at = position - window.offset;
      if (position + RECORD_HEADER_BYTES > window.end) {
        if (window.end < sizeBytes) break;
        stop = damage(position, sizeBytes - position, "bytes shorter than a record's header", null);
        break;
      }
      if (!isRecordHeader(window.bytes, window.view, at, salt, position)) {
        stop = damage(position, 0, "no record of this place", null);
        break;
      }
      const header = readRecordHeader(window.view, at);
      if (!isPossible(header)) {
        stop = damage(position, 0, "a header that no log writes", null);
        break;
      }
      assertReadable(header, name, position, understandsType);
      const length = recordLength(header.indexLength, header.bodyLength);
      if (position + length > sizeBytes) {
        stop = damage(position, sizeBytes - position, "the file ends within the record", header);
        break;
      }
      if (position + length > window.end) {
        need = length;
        break;
      }
      if (!isContentIntact(window.bytes, at, header)) {
        stop = damage(position, length, "the record's content does not match its CRC", header);
        break;
      }
      if (header.type === LOG_RECORD_TYPE.openingState && position === SEGMENT_HEADER_BYTES) {
        const bytes = window.bytes.subarray(at, at + length);
        stop = { kind: "opening", offset: position, bytes, durableUpTo: header.durableUpTo, timeUs: header.timeUs };
        break;
      }
      const first = firstCovered(header, window.bytes, at);
      if (typeof first !== "number") {
        stop = damage(position, length, first.fault, null);
        break;
      }
      if (first <= lastSequence || header.type === LOG_RECORD_TYPE.openingState) {
        stop = damage(position, length, `a record of sequence ${first} behind ${lastSequence}`, null);
        break;
      }
      if (first >= endSequence) {
        stop = { kind: "superseded", offset: position, length: sizeBytes - position };
        break;
      }
      if (header.sequence >= endSequence) {
        const reason = `a dropped stretch up to ${header.sequence}, into the segment from ${endSequence} on`;
        stop = damage(position, length, reason, null);
        break;
      }
      if (run.count === 0) run.firstSequence = first;
      else if (first !== lastSequence + 1) break;
      lastSequence = header.sequence;
      position += length;
      run.count++;
      if (header.durableUpTo > run.durableUpTo) run.durableUpTo = header.durableUpTo;
      if (header.timeUs > run.lastTimeUs) run.lastTimeUs = header.timeUs;
      if (header.type !== LOG_RECORD_TYPE.mark) run.onlyMarks = false;
    }
    if (run.count > 0) {
      run.bytes = window.bytes.subarray(run.offset - window.offset, position - window.offset);
      run.lastSequence = lastSequence;
      yield run;
    }
    if (stop === null) continue;
    if (stop.kind === "damage" && stop.length === 0) {
      stop.length = (await nextHeader(window, position, sizeBytes, salt)) - position;
    }
    position += stop.kind === "opening" ? stop.bytes.length : stop.length;
    yield stop;
  }
}

/** The next offset behind `position`, in steps of 8, where an intact header of this place stands; the file's size when none does. */
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
 * A record claims only what was durable before it was written; a dropped stretch, written later, may claim more. A header that says
 * otherwise has a right CRC and is none of the log's: were it believed, all numbers up to its claim would be taken for lost and never
 * be used.
 */
function isPossible({ type, sequence, durableUpTo }: RecordHeader): boolean {
  const mostDurable = type === LOG_RECORD_TYPE.dropped ? MAXIMUM_SEQUENCE : sequence;
  return sequence <= MAXIMUM_SEQUENCE && durableUpTo <= mostDurable;
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

function assertReadable(
  header: RecordHeader,
  segment: string,
  offset: number,
  understandsType: (type: number) => boolean,
): void {
  if (header.version !== RECORD_VERSION) {
    throw new StorageError(
      "format_unsupported",
      `segment ${segment}: the record at ${offset} has version ${header.version}; this release reads version ` +
        `${RECORD_VERSION}: open the store with the release that wrote it, or a newer one`,
      { segment, offset, version: header.version, readable: RECORD_VERSION },
    );
  }
  const { type } = header;
  const mustUnderstand = (header.flags & RECORD_FLAG_MUST_UNDERSTAND) !== 0;
  if (!mustUnderstand || isOwnRecord(type) || understandsType(type)) return;
  throw new StorageError(
    "record_type_unsupported",
    `segment ${segment}: the record at ${offset} is of type ${type}, which this release does not know and must: ` +
      "open the store with the release that wrote it, or a newer one",
    { segment, offset, type },
  );
}
