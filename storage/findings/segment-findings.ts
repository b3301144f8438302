import { LRUCache } from "lru-cache";
import type { FileSystem } from "../disk/file-system-interface.js";
import { DETAIL_COLUMNS, FIGURE_COLUMNS, type SegmentFindings, type TimeSpan, viewColumns } from "./finding-columns.js";
import { FindingsFiles, type SegmentOnDisk, type StoredColumns } from "./findings-files.js";
import type { FoundSegment } from "./findings-format.js";
import { FindingsScan } from "./make-findings.js";

/** The last segments of a thread stay in memory: a download asks for one segment many times. */
const KEPT_BYTES = 64 * 1024 * 1024;

/** A segment of the log, with the times of its runs. */
export interface SegmentSpan extends SegmentOnDisk, TimeSpan {}

/** What reads columns need of the reader. */
export type ColumnsReader = Pick<FindingsReader, "spans" | "read">;

/** Gives the columns of a store's segments, from the files that are kept of them, or from the segments themselves. */
export class FindingsReader {
  readonly #fileSystem: FileSystem;
  /** Segments that get no file. */
  readonly #damaged = new Set<number>();
  /** Segments that had a file when it was looked for. If one is removed later, it is made when its columns are read. */
  readonly #found = new Set<string>();
  /** Of sealed segments. */
  readonly #times = new Map<string, TimeSpan>();
  readonly #kept = new LRUCache<string, SegmentFindings & TimeSpan>({ maxSize: KEPT_BYTES });
  /** The newest segment. Each question reads what has been added since the one before. */
  #newest: { key: string; scan: FindingsScan; found: SegmentFindings & TimeSpan } | undefined;

  constructor(fileSystem: FileSystem) {
    this.#fileSystem = fileSystem;
  }

  /**
   * The segments in the order of the log. Columns that had to be made are kept in a file.
   *
   * @param untilSequence the last record that counts
   * @param afterSequence only segments with records after this one
   * @throws FileSystemError; StorageError for a log of a newer release
   */
  async spans(dataDirectory: string, untilSequence: number, afterSequence = 0): Promise<SegmentSpan[]> {
    const files = new FindingsFiles(this.#fileSystem, dataDirectory);
    const spans: SegmentSpan[] = [];
    for (const segment of await files.segments()) {
      const { base, nextBase } = segment;
      if (base > untilSequence || (nextBase ?? Number.POSITIVE_INFINITY) <= afterSequence + 1) continue;
      const { lowUs, highUs } =
        nextBase === null
          ? await this.#ofNewest(files.metaPath, base, untilSequence)
          : await this.#timesOf(files, segment, keyOf(dataDirectory, segment));
      spans.push({ base, nextBase, lowUs, highUs });
    }
    return spans;
  }

  /** The columns of one of them, with its runs up to the last record that counts. @throws as `spans` */
  async read(
    dataDirectory: string,
    segment: SegmentOnDisk,
    untilSequence: number,
    needsDetails: boolean,
  ): Promise<SegmentFindings> {
    const files = new FindingsFiles(this.#fileSystem, dataDirectory);
    const found =
      segment.nextBase === null
        ? await this.#ofNewest(files.metaPath, segment.base, untilSequence)
        : await this.#ofSealed(files, segment, keyOf(dataDirectory, segment), needsDetails);
    return runsUpTo(found, untilSequence);
  }

  /**
   * Makes one file that is missing. Two threads begin at different ends, so that they do not make the same ones.
   *
   * @returns false if none is, or if it cannot be kept
   */
  async makeMissing(dataDirectory: string, { newestFirst = false } = {}): Promise<boolean> {
    const files = new FindingsFiles(this.#fileSystem, dataDirectory);
    const segments = await files.segments();
    for (const segment of newestFirst ? segments.toReversed() : segments) {
      const key = keyOf(dataDirectory, segment);
      if (this.#found.has(key)) continue;
      const found = await files.identify(segment);
      if (found !== null && (await files.times(found)) !== null) this.#found.add(key);
      if (found === null || this.#damaged.has(segment.base) || this.#found.has(key)) continue;
      const { isKept } = await this.#make(files, segment, found);
      if (isKept || !this.#damaged.has(segment.base)) return isKept;
    }
    await files.removeStrays(segments);
    return false;
  }

  async #timesOf(files: FindingsFiles, segment: SegmentOnDisk, key: string): Promise<TimeSpan> {
    const known = this.#times.get(key);
    if (known !== undefined) return known;
    const identity = await files.identify(segment);
    const stored = identity && (await files.times(identity));
    const { lowUs, highUs } = stored ?? (await this.#ofSealed(files, segment, key, false));
    this.#times.set(key, { lowUs, highUs });
    return { lowUs, highUs };
  }

  async #ofSealed(
    files: FindingsFiles,
    segment: SegmentOnDisk,
    key: string,
    needsDetails: boolean,
  ): Promise<SegmentFindings & TimeSpan> {
    const keptAs = `${key} ${needsDetails}`;
    const kept = this.#kept.get(keptAs);
    if (kept !== undefined) return kept;
    const identity = await files.identify(segment);
    const stored = identity && (await files.read(identity, needsDetails));
    const columns = stored ?? (await this.#make(files, segment, identity)).columns;
    const found = inMemory(columns, needsDetails);
    this.#kept.set(keptAs, found, { size: columns.figures.length + (columns.details?.length ?? 0) + 1 });
    return found;
  }

  async #ofNewest(metaPath: string, base: number, untilSequence: number): Promise<SegmentFindings & TimeSpan> {
    const key = `${metaPath} ${base}`;
    const known = this.#newest?.key === key ? this.#newest : undefined;
    // What fails begins anew.
    this.#newest = undefined;
    const scan = known?.scan ?? new FindingsScan(this.#fileSystem, metaPath, base);
    const hasGrown = await scan.readTo(untilSequence + 1);
    const found = known === undefined || hasGrown ? inMemory(scan.columns(), true) : known.found;
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

/** Segments by where they lie: a sealed one never changes. */
function keyOf(dataDirectory: string, { base, nextBase }: SegmentOnDisk): string {
  return `${dataDirectory} ${base} ${nextBase}`;
}

/** The columns as they lie in these bytes. */
export function inMemory(columns: StoredColumns, needsDetails: boolean): SegmentFindings & TimeSpan {
  const { counts, figures, details, lowUs, highUs } = columns;
  return {
    ...{ counts, lowUs, highUs },
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
