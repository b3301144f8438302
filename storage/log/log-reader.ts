import { isMissing } from "../disk/file-system-error.js";
import type { FileSystem, StoreFile } from "../disk/file-system-interface.js";
import { type OpenFile, OpenFiles } from "../disk/open-files.js";
import { withUnreadableAsDamage } from "../disk/unreadable-damage.js";
import { closeLater, readFully, readFullySync } from "../disk/whole-files.js";
import { StorageError } from "../storage-error.js";
import type { LogRecord, RecordLocation } from "./committed-batch.js";
import {
  isContentIntact,
  isRecordHeader,
  MAXIMUM_RECORD_BYTES,
  RECORD_HEADER_BYTES,
  readRecordHeader,
  recordLength,
} from "./record-format.js";
import { decodeSegmentHeader, SEGMENT_HEADER_BYTES, segmentName } from "./segment.js";

/** Neighbouring records that are no further apart are read in one go: reading the gap costs less than a second read. */
const JOINED_GAP_BYTES = 16 * 1024;
const JOINED_READ_BYTES = 1024 * 1024;

/** How long all calls together may block in one turn of the event loop; the last read may go over it. */
const BLOCKING_MS = 0.5;
/** A blocking read that takes longer went to the disk: the page cache answers the largest one in a tenth of this. */
const SLOW_READ_MS = 0.25;
/** After a read that went to the disk, no call blocks for this long. */
const NO_BLOCKING_MS = 50;
/** Larger extents are always read in the thread pool. */
const BLOCKING_READ_BYTES = 128 * 1024;
/** Extents that one call reads at a time in Node's thread pool. The pool has four threads, and the recorder's writes and syncs need some of them. */
const EXTENTS_AT_A_TIME = 3;

/** Records that are read in one go: an extent of a segment, and the positions of the records in the list of wanted locations. */
interface RecordExtent extends RecordLocation {
  positions: number[];
}

type ReadableFile = ReturnType<typeof withUnreadableAsDamage>;

interface OpenSegment extends OpenFile {
  readonly file: ReadableFile;
  readonly salt: number;
}

/**
 * Reads single records of the log by their locations, from any thread, and verifies both CRCs. A segment only grows, so a location stays valid.
 */
export class LogReader {
  readonly #fileSystem: FileSystem;
  readonly #directory: string;
  readonly #open: OpenFiles<number, OpenSegment>;
  readonly #nowMs: () => number;
  #noBlockingUntilMs = 0;
  /** Time spent in blocking reads in this turn of the event loop. */
  #blockedMs = 0;
  /** Resolves in the next turn; undefined until a read has blocked in this one. */
  #nextTurn: Promise<void> | undefined;

  /** @param options.nowMs a monotonic clock; default: that of the process */
  constructor(options: {
    fileSystem: FileSystem;
    directory: string;
    maximumOpenFiles?: number;
    nowMs?: () => number;
  }) {
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#fileSystem = options.fileSystem;
    this.#directory = options.directory;
    this.#open = new OpenFiles(options.maximumOpenFiles);
  }

  /**
   * @param check throws MisplacedRecordError for another record than the one wanted
   * @throws StorageError `record_missing`, `record_damaged`; what `check` throws
   */
  async read(location: RecordLocation, check: (record: LogRecord) => void = takeAny): Promise<LogRecord> {
    return this.#withSegment(location, async ({ file, salt }) => {
      const bytes = allocate(location);
      const count = await readFully(file, bytes, location.offset);
      const record = decodeRecord(bytes.subarray(0, count), location, salt);
      check(record);
      return record;
    });
  }

  /**
   * Reads many records, neighbours together, and returns them in the order of the locations. While the page cache answers, the reads block, up to
   * `BLOCKING_MS` in a turn of the event loop. For a page of fifty records that takes a quarter of the time that reads in the thread pool take, and a
   * quarter of their CPU time. Reads that wait for the disk go to the pool.
   *
   * @param check as for `read`, for the location at `position`; it runs while the thread is blocked, so it should be quick
   * @throws StorageError `record_missing`, `record_damaged`; what `check` throws
   */
  async readMany(
    locations: readonly RecordLocation[],
    check: (record: LogRecord, position: number) => void = takeAny,
  ): Promise<LogRecord[]> {
    const extents = joinNeighbours(locations);
    const records = new Array<LogRecord>(locations.length);
    let next = 0;
    while (next < extents.length && extents[next]!.length <= BLOCKING_READ_BYTES) {
      const startMs = this.#nowMs();
      if (startMs < this.#noBlockingUntilMs) break;
      if (this.#blockedMs >= BLOCKING_MS) {
        await this.#nextTurn;
        continue;
      }
      const extent = extents[next++]!;
      try {
        this.#withSegmentSync(extent, ({ file, salt }) => {
          const bytes = allocate(extent);
          const count = readFullySync(file, bytes, extent.offset);
          decodeExtent(extent, bytes.subarray(0, count), locations, salt, check, records);
        });
      } finally {
        this.#blocked(startMs);
      }
    }
    const readExtents = async (): Promise<void> => {
      for (let extent = extents[next++]; extent !== undefined; extent = extents[next++]) {
        const wanted = extent;
        await this.#withSegment(wanted, async ({ file, salt }) => {
          const bytes = allocate(wanted);
          const count = await readFully(file, bytes, wanted.offset);
          decodeExtent(wanted, bytes.subarray(0, count), locations, salt, check, records);
        });
      }
    };
    await Promise.all(Array.from({ length: Math.min(EXTENTS_AT_A_TIME, extents.length - next) }, readExtents));
    return records;
  }

  /** Counts a blocking read that has just ended. */
  #blocked(startMs: number): void {
    const nowMs = this.#nowMs();
    this.#blockedMs += nowMs - startMs;
    if (nowMs - startMs > SLOW_READ_MS) this.#noBlockingUntilMs = nowMs + NO_BLOCKING_MS;
    this.#nextTurn ??= new Promise((resolve) => {
      setImmediate(() => {
        this.#blockedMs = 0;
        this.#nextTurn = undefined;
        resolve();
      });
    });
  }

  /** Closes each file as soon as nobody reads it. */
  close(): void {
    this.#open.clear();
  }

  async #withSegment<T>(location: RecordLocation, use: (segment: OpenSegment) => Promise<T>): Promise<T> {
    const segment = await this.#segment(location);
    try {
      return await use(segment);
    } finally {
      this.#open.release(segment);
    }
  }

  #withSegmentSync<T>(location: RecordLocation, use: (segment: OpenSegment) => T): T {
    const segment = this.#segmentSync(location);
    try {
      return use(segment);
    } finally {
      this.#open.release(segment);
    }
  }

  async #segment(location: RecordLocation): Promise<OpenSegment> {
    const known = this.#open.take(location.segmentBase);
    if (known !== undefined) return known;
    const path = `${this.#directory}/${segmentName(location.segmentBase)}`;
    let file: ReadableFile;
    try {
      file = readable(await this.#fileSystem.open(path, "read"), location);
    } catch (error) {
      throw isMissing(error) ? missing(location) : error;
    }
    try {
      const bytes = new Uint8Array(SEGMENT_HEADER_BYTES);
      const count = await readFully(file, bytes, 0);
      return this.#opened(location, file, bytes.subarray(0, count));
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  #segmentSync(location: RecordLocation): OpenSegment {
    const known = this.#open.take(location.segmentBase);
    if (known !== undefined) return known;
    let file: ReadableFile;
    try {
      file = readable(this.#fileSystem.openSync(`${this.#directory}/${segmentName(location.segmentBase)}`), location);
    } catch (error) {
      throw isMissing(error) ? missing(location) : error;
    }
    try {
      const bytes = new Uint8Array(SEGMENT_HEADER_BYTES);
      const count = readFullySync(file, bytes, 0);
      return this.#opened(location, file, bytes.subarray(0, count));
    } catch (error) {
      closeLater(file);
      throw error;
    }
  }

  #opened(location: RecordLocation, file: ReadableFile, bytes: Uint8Array): OpenSegment {
    const { header } = decodeSegmentHeader(bytes);
    if (header === null || header.base !== location.segmentBase)
      throw damaged(location, "the segment's header is damaged");
    const segment = { file, salt: header.salt, readers: 1, isEvicted: false };
    // Another reader may have opened the segment meanwhile. Its file is then evicted, and closed when its readers are done.
    this.#open.set(location.segmentBase, segment);
    return segment;
  }
}

function readable(file: StoreFile, { segmentBase }: RecordLocation): ReadableFile {
  return withUnreadableAsDamage(file, (offset, { code }) =>
    damaged({ segmentBase, offset, length: 0 }, `the disk cannot read these bytes (${code})`),
  );
}

/** Joins neighbouring records into extents, in the order of the log. */
function joinNeighbours(locations: readonly RecordLocation[]): RecordExtent[] {
  const order = locations.map((_, position) => position);
  order.sort((left, right) => {
    const [a, b] = [locations[left]!, locations[right]!];
    return a.segmentBase - b.segmentBase || a.offset - b.offset;
  });
  const extents: RecordExtent[] = [];
  let last: RecordExtent | undefined;
  for (const position of order) {
    const { segmentBase, offset, length } = locations[position]!;
    const isNear =
      last !== undefined &&
      segmentBase === last.segmentBase &&
      offset <= last.offset + last.length + JOINED_GAP_BYTES &&
      offset + length - last.offset <= JOINED_READ_BYTES;
    if (last !== undefined && isNear) {
      last.length = Math.max(last.length, offset + length - last.offset);
      last.positions.push(position);
    } else {
      last = { segmentBase, offset, length, positions: [position] };
      extents.push(last);
    }
  }
  return extents;
}

function decodeExtent(
  extent: RecordExtent,
  bytes: Uint8Array,
  locations: readonly RecordLocation[],
  salt: number,
  check: (record: LogRecord, position: number) => void,
  records: LogRecord[],
): void {
  for (const position of extent.positions) {
    const location = locations[position]!;
    const from = location.offset - extent.offset;
    const record = decodeRecord(bytes.subarray(from, from + location.length), location, salt);
    check(record, position);
    records[position] = record;
  }
}

function takeAny(): void {}

function allocate(location: RecordLocation): Uint8Array {
  if (!(location.length >= RECORD_HEADER_BYTES && location.length <= MAXIMUM_RECORD_BYTES)) {
    throw damaged(location, "no record has this length");
  }
  return new Uint8Array(location.length);
}

/** Decodes the record that `bytes` should hold, exactly. Index section and body are views of the bytes. */
function decodeRecord(bytes: Uint8Array, location: RecordLocation, salt: number): LogRecord {
  if (bytes.length < location.length) throw damaged(location, "the segment ends within the record");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!isRecordHeader(bytes, view, 0, salt, location.offset)) throw damaged(location, "the record's header is damaged");
  const header = readRecordHeader(view, 0);
  if (recordLength(header.indexLength, header.bodyLength) !== location.length) {
    throw damaged(location, "another record stands there");
  }
  if (!isContentIntact(bytes, 0, header)) throw damaged(location, "the record's content does not match its CRC");
  const bodyAt = RECORD_HEADER_BYTES + header.indexLength;
  return {
    type: header.type,
    flags: header.flags,
    sequence: header.sequence,
    timeUs: header.timeUs,
    index: bytes.subarray(RECORD_HEADER_BYTES, bodyAt),
    body: bytes.subarray(bodyAt, bodyAt + header.bodyLength),
  };
}

function damaged(location: RecordLocation, reason: string): StorageError {
  const { segmentBase, offset, length } = location;
  const place = { segment: segmentName(segmentBase), offset, length };
  return new StorageError("record_damaged", `segment ${place.segment}, offset ${offset}: ${reason}`, place);
}

function missing(location: RecordLocation): StorageError {
  const segment = segmentName(location.segmentBase);
  return new StorageError("record_missing", `segment ${segment} does not exist`, { segment, offset: location.offset });
}
