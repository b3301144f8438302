import type { FileSystem, StoreFile } from "../disk/file-system-interface.js";
import { withFile } from "../disk/whole-files.js";
import { readSegmentHeader, segmentName } from "../log/segment.js";
import { mapConcurrently } from "../map-concurrently.js";
import { scanSegment } from "./segment-scan.js";

/** Small reads at a time: a disk answers several at once sooner than one by one. */
const HEADERS_AT_A_TIME = 16;

export interface StrayOptions {
  fileSystem: FileSystem;
  /** Folder of the segments. */
  directory: string;
  /** Bases of all segments, from their names, ascending. */
  bases: readonly number[];
}

/**
 * Finds segments that somebody has copied within the folder to a number that is not their own. By its name such a file would end the segment before
 * it: the records from its number on would count as superseded. By its header it is another segment, which exists too. It is stray if the log needs
 * no segment of that number: the segment before has records beyond it, or ends elsewhere. If the segment before ends right below the number, somebody
 * overwrote the segment that was there, and log-walk.ts judges it.
 *
 * @returns the numbers in their names, ascending
 * @throws FileSystemError
 */
export async function findStraySegments(options: StrayOptions): Promise<number[]> {
  const { bases } = options;
  const found = await mapConcurrently(bases, HEADERS_AT_A_TIME, (base) => withSegment(options, base, headerOf));
  const headers = new Map(bases.map((base, at) => [base, found[at] ?? null]));
  const strays: number[] = [];
  let before: number | null = null;
  for (const base of bases) {
    const header = headers.get(base) ?? null;
    const own = header === null || header.base === base ? null : headers.get(header.base);
    const isCopy = header !== null && own?.base === header.base && own.salt === header.salt;
    if (isCopy && (await isNeedless(base, before))) strays.push(base);
    else before = base;
  }
  return strays;

  async function isNeedless(base: number, previous: number | null): Promise<boolean> {
    const salt = previous === null ? undefined : headers.get(previous)?.salt;
    // Nothing says where the first segment should begin. No segment has the number 0.
    if (previous === null || salt === undefined) return base < 1;
    const { last, isDamaged } = await withSegment(options, previous, (file) => endOf(file, previous, salt));
    return last >= base || (last < base - 1 && !isDamaged);
  }
}

function withSegment<T>(
  { fileSystem, directory }: StrayOptions,
  base: number,
  use: (file: StoreFile) => Promise<T>,
): Promise<T> {
  return withFile(fileSystem, `${directory}/${segmentName(base)}`, use);
}

async function headerOf(file: StoreFile): Promise<{ base: number; salt: number } | null> {
  return (await readSegmentHeader(file)).header;
}

/** The largest sequence number of the segment's intact records, and whether anything in it is damaged. */
async function endOf(file: StoreFile, base: number, salt: number) {
  const end = { last: base - 1, isDamaged: false };
  const scan = scanSegment({
    file,
    name: segmentName(base),
    base,
    salt,
    endSequence: Number.POSITIVE_INFINITY,
    sizeBytes: await file.size(),
  });
  for await (const item of scan) {
    if (item.kind === "damage") end.isDamaged = true;
    else if (item.kind === "records") end.last = Math.max(end.last, item.lastSequence);
  }
  return end;
}
