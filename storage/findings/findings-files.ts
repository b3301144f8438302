import { threadId } from "node:worker_threads";
import { crc32 } from "node:zlib";
import { FileSystemError } from "../disk/file-system-error.js";
import type { FileSystem, StoreFile } from "../disk/file-system-interface.js";
import { readFully, TEMPORARY_SUFFIX, withFile, writeFully } from "../disk/whole-files.js";
import { readSegmentHeader, segmentBaseOf, segmentName } from "../log/segment.js";
import { columnsBytes, DETAIL_COLUMNS, FIGURE_COLUMNS, type TimeSpan } from "./finding-columns.js";
import type { BuiltColumns } from "./findings-builder.js";
import {
  decodeFindingsHead,
  encodeFindings,
  FINDINGS_HEAD_BYTES,
  type FindingsHead,
  type FoundSegment,
  findingsBaseOf,
  findingsName,
} from "./findings-format.js";

/** Room that is left to the log: twice of what is low on a disk (workers/recorder/upkeep/disk-room.ts). */
const LEFT_ROOM = { bytes: 2 * 1024 ** 3, share: 0.1 };

/** A segment of the log as it lies on the disk. */
export interface SegmentOnDisk {
  base: number;
  /** The next segment's base; null: this is the newest one. */
  nextBase: number | null;
}

/** What of a findings file is read: a file's figures are enough for statistics. */
export interface StoredColumns extends TimeSpan {
  counts: FindingsHead["counts"];
  figures: Uint8Array<ArrayBuffer>;
  details: Uint8Array<ArrayBuffer> | null;
}

/** The files with the columns of sealed segments. They are derived: whatever is wrong with one, its segment is read instead. */
export class FindingsFiles {
  readonly #fileSystem: FileSystem;
  readonly #directory: string;
  readonly metaPath: string;

  /** @param dataDirectory path of the store */
  constructor(fileSystem: FileSystem, dataDirectory: string) {
    this.#fileSystem = fileSystem;
    this.#directory = `${dataDirectory}/findings`;
    this.metaPath = `${dataDirectory}/meta`;
  }

  /** In the order of the log. */
  async segments(): Promise<SegmentOnDisk[]> {
    const names = await this.#fileSystem.readDirectory(this.metaPath);
    const bases = names.flatMap(({ name }) => segmentBaseOf(name) ?? []).sort((a, b) => a - b);
    return bases.map((base, at) => ({ base, nextBase: bases[at + 1] ?? null }));
  }

  /** The segment as a findings file names it; null for the newest one, and for one whose header is damaged. */
  identify({ base, nextBase }: SegmentOnDisk): Promise<FoundSegment | null> {
    return withFile(this.#fileSystem, `${this.metaPath}/${segmentName(base)}`, async (file) => {
      const { header } = await readSegmentHeader(file);
      if (nextBase === null || header?.base !== base) return null;
      return { base, salt: header.salt, lastSequence: nextBase - 1, segmentBytes: await file.size() };
    });
  }

  /** Null for a file that is missing, damaged or of another segment. */
  async read(segment: FoundSegment, needsDetails: boolean): Promise<StoredColumns | null> {
    return this.#opened(segment, async (file, { counts, lowUs, highUs, figuresCrc, detailsCrc }) => {
      const figuresBytes = columnsBytes(FIGURE_COLUMNS, counts);
      const figures = await readPart(file, FINDINGS_HEAD_BYTES, figuresBytes, figuresCrc);
      if (figures === null) return null;
      if (!needsDetails) return { counts, figures, details: null, lowUs, highUs };
      const at = FINDINGS_HEAD_BYTES + figuresBytes;
      const details = await readPart(file, at, columnsBytes(DETAIL_COLUMNS, counts), detailsCrc);
      return details && { counts, figures, details, lowUs, highUs };
    });
  }

  /** The times of the segment's runs, of a file of which only the head is verified. Null if there is none. */
  times(segment: FoundSegment): Promise<TimeSpan | null> {
    return this.#opened(segment, async (_, { lowUs, highUs }) => ({ lowUs, highUs }));
  }

  /** Keeps the columns. False if that fails, or there is little room: they are made again when they are needed. */
  async write(segment: FoundSegment, columns: BuiltColumns): Promise<boolean> {
    const fileSystem = this.#fileSystem;
    const path = `${this.#directory}/${findingsName(segment.base)}`;
    // Two threads may make the same file.
    const temporary = `${path}.${threadId}${TEMPORARY_SUFFIX}`;
    try {
      const bytes = encodeFindings(segment, columns);
      await fileSystem.makeDirectory(this.#directory);
      const { freeBytes, totalBytes } = await fileSystem.room(this.#directory);
      if (freeBytes - bytes.length < Math.min(LEFT_ROOM.bytes, totalBytes * LEFT_ROOM.share)) return false;
      const file = await fileSystem.open(temporary, "createOrUpdate");
      try {
        await file.truncate(0);
        await writeFully(file, bytes, 0, temporary);
      } finally {
        await file.close();
      }
      // Without a sync: a crash can leave a file that does not match its CRCs, and that one is made again.
      await fileSystem.rename(temporary, path);
      return true;
    } catch (error) {
      if (!(error instanceof FileSystemError)) throw error;
      await fileSystem.unlink(temporary).catch(() => {});
      return false;
    }
  }

  /** Removes what belongs to no sealed segment: a restored backup can leave such files, and a crash a temporary one. */
  async removeStrays(segments: readonly SegmentOnDisk[]): Promise<void> {
    const sealed = new Set(segments.filter(({ nextBase }) => nextBase !== null).map(({ base }) => base));
    // A folder that is missing has none; in one that cannot be read they stay.
    for (const { name } of await this.#fileSystem.readDirectory(this.#directory).catch(() => [])) {
      const base = findingsBaseOf(name);
      if (base === undefined || !sealed.has(base))
        await this.#fileSystem.unlink(`${this.#directory}/${name}`).catch(() => {});
    }
  }

  async #opened<T>(
    of: FoundSegment,
    use: (file: StoreFile, head: FindingsHead) => Promise<T | null>,
  ): Promise<T | null> {
    try {
      return await withFile(this.#fileSystem, `${this.#directory}/${findingsName(of.base)}`, async (file) => {
        const bytes = new Uint8Array(FINDINGS_HEAD_BYTES);
        const head = decodeFindingsHead(bytes.subarray(0, await readFully(file, bytes, 0)));
        if (head === null || head.base !== of.base || head.salt !== of.salt) return null;
        if (head.lastSequence !== of.lastSequence || head.segmentBytes !== of.segmentBytes) return null;
        const columns = columnsBytes(FIGURE_COLUMNS, head.counts) + columnsBytes(DETAIL_COLUMNS, head.counts);
        return (await file.size()) === FINDINGS_HEAD_BYTES + columns ? use(file, head) : null;
      });
    } catch (error) {
      if (error instanceof FileSystemError) return null;
      throw error;
    }
  }
}

/** Null if it does not match the CRC. */
async function readPart(
  file: StoreFile,
  offset: number,
  lengthBytes: number,
  crc: number,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const bytes = new Uint8Array(lengthBytes);
  const count = await readFully(file, bytes, offset);
  return count === lengthBytes && crc32(bytes) === crc ? bytes : null;
}
