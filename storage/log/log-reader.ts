import { LRUCache } from "lru-cache";
import { type FileSystem, isMissing, readFully, readFullySync, type StoreFile } from "../disk/file-system.js";
import { KEPT_FILES } from "../disk/kept-files.js";
import { withUnreadableAsDamage } from "../disk/unreadable-damage.js";
import { StorageError } from "../storage-error.js";
import type { LogRecord, RecordLocation } from "./log-batch.js";
import { mayHaveMoved } from "./misplaced-record.js";
import {
  isContentIntact,
  isRecordHeader,
  MAXIMUM_RECORD_BYTES,
  RECORD_HEADER_BYTES,
  readRecordHeader,
  recordLength,
} from "./record-format.js";
import { decodeSegmentHeader, SEGMENT_HEADER_BYTES, segmentName } from "./segment.js";

/** Neighbouring records of a batch that are no further apart are read in one go: less than the cost of a read of its own. */
const JOINED_GAP_BYTES = 16 * 1024;
const JOINED_READ_BYTES = 1024 * 1024;

/** What all calls together may spend in blocking reads in one turn of the event loop, and one read. */
const BLOCKING_MS = 0.5;
/** A blocking read that took longer was one of the disk: the page cache gives the largest in a tenth of that. */
const SLOW_READ_MS = 0.25;
/** How long no call blocks after one that met a slow disk. */
const NO_BLOCKING_MS = 50;
/** A larger extent is never read blocking. */
const BLOCKING_READ_BYTES = 128 * 1024;
/**
 * Of one call, through the thread pool: each is a trip to a thread of Node's pool and back, which is most of the time of a page whose records lie apart. The
 * pool has four, and the recorder's writes and syncs need some of them.
 */
const EXTENTS_AT_A_TIME = 3;

/** Records that are read in one go: one extent of a segment, and their places among the locations asked for. */
interface RecordExtent extends RecordLocation {
  positions: number[];
}

type ReadableFile = ReturnType<typeof withUnreadableAsDamage>;

interface OpenSegment {
  file: ReadableFile;
  salt: number;
  readers: number;
  isEvicted: boolean;
}

/**
 * Reads single records of the log by their locations, from any thread, verifying both CRCs. Segments are only ever appended to, so a
 * location stays good as long as its segment is there and is not compacted.
 *
 * Compaction gives a segment's name to another file, in which records lie elsewhere. Whoever has locations to change meanwhile holds the
 * old file: a record that is not where a location says in the new file is looked for in the held one. Neither file takes a record of
 * the other for its own, since their salts differ; but where a record lay in the old one, another as long may begin in the new one, which
 * the caller's `check` tells. Once all locations are changed the old file is let go, and a read that has an old one still fails: its
 * caller looks up where the record is now.
 */
export class LogReader {
  readonly #fileSystem: FileSystem;
  readonly #directory: string;
  readonly #open: LRUCache<number, OpenSegment>;
  readonly #nowMs: () => number;
  #noBlockingUntilMs = 0;
  /** Spent in blocking reads in this turn of the event loop. */
  #blockedMs = 0;
  /** Resolves in the next turn; undefined while nothing was spent in this one. */
  #nextTurn: Promise<void> | undefined;
  readonly #held = new Map<number, OpenSegment>();
  /** Counts calls of `replaced`: a file that was being opened meanwhile may be the old one. */
  #replacements = 0;

  /** @param options.nowMs of a clock that only ascends; default: that of the process */
  constructor(options: {
    fileSystem: FileSystem;
    directory: string;
    maximumOpenFiles?: number;
    nowMs?: () => number;
  }) {
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#fileSystem = options.fileSystem;
    this.#directory = options.directory;
    this.#open = new LRUCache<number, OpenSegment>({
      max: options.maximumOpenFiles ?? KEPT_FILES,
      dispose: (segment) => {
        segment.isEvicted = true;
        closeUnused(segment);
      },
    });
  }

  /**
   * @param check throws MisplacedRecordError for another record than the one wanted
   * @throws StorageError `record_missing`, `record_damaged`; what `check` throws
   */
  async read(location: RecordLocation, check: (record: LogRecord) => void = takeAny): Promise<LogRecord> {
    return this.#tryFiles(location, async ({ file, salt }) => {
      const bytes = allocate(location);
      const count = await readFully(file, bytes, location.offset);
      const record = decodeRecord(bytes.subarray(0, count), location, salt);
      check(record);
      return record;
    });
  }

  /**
   * As `read`, blocking: a few microseconds for a small record that the page cache holds. Not for what may be large or cold.
   *
   * @throws StorageError `record_missing`, `record_damaged`
   */
  readSync(location: RecordLocation): LogRecord {
    return this.#tryFilesSync(location, ({ file, salt }) => {
      const bytes = allocate(location);
      const count = readFullySync(file, bytes, location.offset);
      return decodeRecord(bytes.subarray(0, count), location, salt);
    });
  }

  /**
   * Reads many records, neighbours together; the results stand in the order of the locations. While the page cache answers, the reads
   * block, for `BLOCKING_MS` and one read in a turn of the event loop: a page of fifty records that lie apart takes a quarter of the time
   * so, and of the CPU time, that it takes through the thread pool. A disk that has to be waited for is left to the pool.
   *
   * @param check as for `read`, of the record for the location at `position`; it counts as blocking, so that it should be quick
   * @throws StorageError `record_missing`, `record_damaged`, for one that cannot be read; what `check` throws
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
        this.#tryFilesSync(extent, ({ file, salt }) => {
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
        await this.#tryFiles(wanted, async ({ file, salt }) => {
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

  /** Keeps the segment's file open as it is now, whatever takes its name, until `letGo`. */
  async hold(segmentBase: number): Promise<void> {
    this.letGo(segmentBase);
    this.#held.set(segmentBase, await this.#segment({ segmentBase, offset: 0, length: 0 }));
  }

  /** Another file has taken the segment's name: from now on reads go there first. */
  replaced(segmentBase: number): void {
    this.#replacements++;
    this.#open.delete(segmentBase);
  }

  /** No location is of the held file any more. */
  letGo(segmentBase: number): void {
    const segment = this.#held.get(segmentBase);
    if (segment === undefined) return;
    this.#held.delete(segmentBase);
    release(segment);
  }

  /** Closes what is open once nobody reads it. */
  close(): void {
    this.#open.clear();
    for (const segmentBase of [...this.#held.keys()]) this.letGo(segmentBase);
  }

  /** What `use` reads in the segment's file, or else in the one that is held for it. */
  async #tryFiles<T>(location: RecordLocation, use: (segment: OpenSegment) => Promise<T>): Promise<T> {
    const current = await this.#segment(location);
    try {
      return await use(current);
    } catch (error) {
      const held = this.#held.get(location.segmentBase);
      if (held === undefined || held === current || !mayHaveMoved(error)) throw error;
      taken(held);
      try {
        return await use(held);
      } catch {
        throw error;
      } finally {
        release(held);
      }
    } finally {
      release(current);
    }
  }

  #tryFilesSync<T>(location: RecordLocation, use: (segment: OpenSegment) => T): T {
    const current = this.#segmentSync(location);
    try {
      return use(current);
    } catch (error) {
      const held = this.#held.get(location.segmentBase);
      if (held === undefined || held === current || !mayHaveMoved(error)) throw error;
      try {
        return use(held);
      } catch {
        throw error;
      }
    } finally {
      release(current);
    }
  }

  async #segment(location: RecordLocation): Promise<OpenSegment> {
    const known = this.#open.get(location.segmentBase);
    if (known !== undefined) return taken(known);
    const replacements = this.#replacements;
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
      return this.#opened(location, file, bytes.subarray(0, count), replacements);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  #segmentSync(location: RecordLocation): OpenSegment {
    const known = this.#open.get(location.segmentBase);
    if (known !== undefined) return taken(known);
    let file: ReadableFile;
    try {
      file = readable(this.#fileSystem.openSync(`${this.#directory}/${segmentName(location.segmentBase)}`), location);
    } catch (error) {
      throw isMissing(error) ? missing(location) : error;
    }
    try {
      const bytes = new Uint8Array(SEGMENT_HEADER_BYTES);
      const count = readFullySync(file, bytes, 0);
      return this.#opened(location, file, bytes.subarray(0, count), this.#replacements);
    } catch (error) {
      void file.close();
      throw error;
    }
  }

  #opened(location: RecordLocation, file: ReadableFile, bytes: Uint8Array, replacements: number): OpenSegment {
    const { header } = decodeSegmentHeader(bytes);
    if (header === null || header.base !== location.segmentBase)
      throw damaged(location, "the segment's header is damaged");
    const segment = { file, salt: header.salt, readers: 1, isEvicted: false };
    // Another reader may have opened it meanwhile: then that one's is disposed of when its readers are done.
    if (replacements === this.#replacements) this.#open.set(location.segmentBase, segment);
    else segment.isEvicted = true;
    return segment;
  }
}

function readable(file: StoreFile, { segmentBase }: RecordLocation): ReadableFile {
  return withUnreadableAsDamage(file, (offset, { code }) =>
    damaged({ segmentBase, offset, length: 0 }, `the disk does not give it (${code})`),
  );
}

/** Stretches in the order of the log. */
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

function taken(segment: OpenSegment): OpenSegment {
  segment.readers++;
  return segment;
}

function release(segment: OpenSegment): void {
  segment.readers--;
  closeUnused(segment);
}

function closeUnused(segment: OpenSegment): void {
  if (segment.isEvicted && segment.readers === 0) void segment.file.close();
}

function allocate(location: RecordLocation): Uint8Array {
  if (!(location.length >= RECORD_HEADER_BYTES && location.length <= MAXIMUM_RECORD_BYTES)) {
    throw damaged(location, "no record has this length");
  }
  return new Uint8Array(location.length);
}

/** The record in `bytes`, which must be all of it. Index section and body are views of the bytes. */
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
  const segment = segmentName(segmentBase);
  return new StorageError("record_damaged", `segment ${segment}, offset ${offset}: ${reason}`, {
    segment,
    offset,
    length,
  });
}

function missing(location: RecordLocation): StorageError {
  const segment = segmentName(location.segmentBase);
  return new StorageError("record_missing", `segment ${segment} is not there`, { segment, offset: location.offset });
}
