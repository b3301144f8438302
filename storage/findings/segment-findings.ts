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
import { FindingsScan } from "./make-findings.js";

/** The last segments of a thread stay in memory: a download asks for one segment many times. */
const KEPT_BYTES = 64 * 1024 * 1024;

/** The columns of a segment, in memory. */
export interface SegmentFindings {
  readonly base: number;
  readonly counts: ColumnCounts;
  readonly figures: FigureColumns;
  /** Null if they were not asked for, and are not there anyway. */
  readonly details: DetailColumns | null;
}

/** Gives the columns of a store's segments, from the files that are kept of them, or from the segments themselves. */
export class FindingsReader {
  readonly #fileSystem: FileSystem;
  /** Segments that get no file. */
  readonly #damaged = new Set<number>();
  /** Segments that had a file when it was looked for. If one is removed later, it is made when its columns are read. */
  readonly #found = new Set<string>();
  readonly #kept = new LRUCache<string, SegmentFindings>({ maxSize: KEPT_BYTES });
  /** The newest segment. Each question reads what has been added since the one before. */
  #newest: { key: string; scan: FindingsScan; found: SegmentFindings } | undefined;

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
      const found =
        nextBase === null
          ? await this.#ofNewest(files.metaPath, base, untilSequence)
          : await this.#ofSealed(`${dataDirectory} ${base} ${nextBase} ${needsDetails}`, files, segment, needsDetails);
      yield runsUpTo(found, untilSequence);
    }
  }

  /** Makes one file that is missing. @returns false if none is, or if it cannot be kept */
  async makeMissing(dataDirectory: string): Promise<boolean> {
    const files = new FindingsFiles(this.#fileSystem, dataDirectory);
    const segments = await files.segments();
    for (const segment of segments) {
      const key = `${dataDirectory} ${segment.base} ${segment.nextBase}`;
      if (this.#found.has(key)) continue;
      const found = await files.identify(segment);
      if (found !== null && (await files.has(found))) this.#found.add(key);
      if (found === null || this.#damaged.has(segment.base) || this.#found.has(key)) continue;
      const { isKept } = await this.#make(files, segment, found);
      if (isKept || !this.#damaged.has(segment.base)) return isKept;
    }
    await files.removeStrays(segments);
    return false;
  }

  async #ofSealed(
    key: string,
    files: FindingsFiles,
    segment: SegmentOnDisk,
    needsDetails: boolean,
  ): Promise<SegmentFindings> {
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept;
    const identity = await files.identify(segment);
    const stored = identity && (await files.read(identity, needsDetails));
    const columns = stored ?? (await this.#make(files, segment, identity)).columns;
    const found = inMemory(segment.base, columns, needsDetails);
    this.#kept.set(key, found, { size: columns.figures.length + (columns.details?.length ?? 0) + 1 });
    return found;
  }

  async #ofNewest(metaPath: string, base: number, untilSequence: number): Promise<SegmentFindings> {
    const key = `${metaPath} ${base}`;
    const known = this.#newest?.key === key ? this.#newest : undefined;
    // What fails begins anew.
    this.#newest = undefined;
    const scan = known?.scan ?? new FindingsScan(this.#fileSystem, metaPath, base);
    const hasGrown = await scan.readTo(untilSequence + 1);
    const found = known === undefined || hasGrown ? inMemory(base, scan.columns(), true) : known.found;
    this.#newest = { key, scan, found };
    return found;
  }

  async #make(
    files: FindingsFiles,
    { base, nextBase }: SegmentOnDisk,
    found: FoundSegment | null,
  ): Promise<{ columns: StoredColumns; isKept: boolean }> {
    const scan = new FindingsScan(this.#fileSystem, files.metaPath, base);
    await scan.readTo(nextBase ?? Number.POSITIVE_INFINITY);
    const { isDamaged } = scan;
    const columns = scan.columns();
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

/** Without runs after this record. What belongs to them stays in the other columns: only a run leads there. */
function runsUpTo(segment: SegmentFindings, untilSequence: number): SegmentFindings {
  const { sequences } = segment.figures;
  let runs = segment.counts.runs;
  while (runs > 0 && (sequences[runs - 1] as number) > untilSequence) runs--;
  return runs === segment.counts.runs ? segment : { ...segment, counts: { ...segment.counts, runs } };
}
