import { LRUCache } from "lru-cache";
import type { FileSystem } from "../disk/file-system-interface.js";
import {
  type ColumnCounts,
  DETAIL_COLUMNS,
  type DetailColumns,
  FIGURE_COLUMNS,
  type FigureColumns,
  viewColumns,
} from "./finding-columns.js";
import { FindingsFiles, type SegmentOnDisk, type StoredColumns } from "./findings-files.js";
import type { FoundSegment } from "./findings-format.js";
import { makeFindings } from "./make-findings.js";

/** The last segments of a thread stay in memory: a download asks for one segment many times. */
const KEPT_BYTES = 64 * 1024 * 1024;

/** The columns of a segment, in memory. */
export interface SegmentFindings {
  readonly base: number;
  readonly counts: ColumnCounts;
  readonly figures: FigureColumns;
  /** Null if they were not asked for. */
  readonly details: DetailColumns | null;
}

/** Gives the columns of a store's segments, from the files that are kept of them, or from the segments themselves. */
export class FindingsReader {
  readonly #fileSystem: FileSystem;
  /** Segments that get no file. */
  readonly #damaged = new Set<number>();
  readonly #kept = new LRUCache<string, SegmentFindings>({ maxSize: KEPT_BYTES });

  constructor(fileSystem: FileSystem) {
    this.#fileSystem = fileSystem;
  }

  /**
   * The segments in the order of the log. Columns that had to be made are kept in a file.
   *
   * @param untilSequence the last record that counts
   * @param fromBase the first segment that is wanted
   * @throws FileSystemError; StorageError for a log of a newer release
   */
  async *segments(
    dataDirectory: string,
    untilSequence: number,
    { needsDetails = false, fromBase = 0 } = {},
  ): AsyncGenerator<SegmentFindings, void, undefined> {
    const files = new FindingsFiles(this.#fileSystem, dataDirectory);
    for (const segment of await files.segments()) {
      const { base, nextBase } = segment;
      if (base < fromBase || base > untilSequence) continue;
      // A segment that has been sealed since the question was asked counts up to there.
      const isWhole = nextBase !== null && nextBase <= untilSequence + 1;
      const key = `${dataDirectory} ${base} ${isWhole ? nextBase : untilSequence} ${needsDetails}`;
      let found = this.#kept.get(key);
      if (found === undefined) {
        const columns = isWhole
          ? await this.#ofSealed(files, segment, needsDetails)
          : (await makeFindings(this.#fileSystem, files.metaPath, base, untilSequence + 1)).columns;
        found = inMemory(base, columns, needsDetails);
        this.#kept.set(key, found, { size: columns.figures.length + (columns.details?.length ?? 0) + 1 });
      }
      yield found;
    }
  }

  /** Makes one file that is missing. @returns false if none is, or if it cannot be kept */
  async makeMissing(dataDirectory: string): Promise<boolean> {
    const files = new FindingsFiles(this.#fileSystem, dataDirectory);
    const segments = await files.segments();
    for (const segment of segments) {
      const found = await files.identify(segment);
      if (found === null || this.#damaged.has(segment.base) || (await files.has(found))) continue;
      const { isKept } = await this.#make(files, segment, found);
      if (isKept || !this.#damaged.has(segment.base)) return isKept;
    }
    await files.removeStrays(segments);
    return false;
  }

  async #ofSealed(files: FindingsFiles, segment: SegmentOnDisk, needsDetails: boolean): Promise<StoredColumns> {
    const found = await files.identify(segment);
    const stored = found && (await files.read(found, needsDetails));
    return stored ?? (await this.#make(files, segment, found)).columns;
  }

  async #make(
    files: FindingsFiles,
    { base, nextBase }: SegmentOnDisk,
    found: FoundSegment | null,
  ): Promise<{ columns: StoredColumns; isKept: boolean }> {
    const end = nextBase ?? Number.POSITIVE_INFINITY;
    const { columns, isDamaged } = await makeFindings(this.#fileSystem, files.metaPath, base, end);
    if (isDamaged) this.#damaged.add(base);
    return { columns, isKept: found !== null && !isDamaged && (await files.write(found, columns)) };
  }
}

function inMemory(base: number, { counts, figures, details }: StoredColumns, needsDetails: boolean): SegmentFindings {
  return {
    base,
    counts,
    figures: viewColumns(FIGURE_COLUMNS, counts, figures.buffer, 0),
    details: needsDetails && details !== null ? viewColumns(DETAIL_COLUMNS, counts, details.buffer, 0) : null,
  };
}
