import { FileSystemError, isMissing } from "../disk/file-system-error.js";
import type { FileSystem } from "../disk/file-system-interface.js";
import { readWholeFile, withFile } from "../disk/whole-files.js";
import { HINT_FORMAT_VERSION, HintDamageError, hintName, verifyHint } from "../log/hint-format.js";
import type { SealedSegment } from "../log/log-options.js";
import { readSegmentHeader, SEGMENT_HEADER_BYTES, segmentName } from "../log/segment.js";
import { scanSegment } from "./segment-scan.js";

/**
 * What the hint file of a sealed segment is:
 * - `usable`: intact, and of this very segment.
 * - `missing`: not there, as after a crash.
 * - `damaged`: not as it was written.
 * - `unusable`: it belongs to another segment or release, or its segment has changed since, or it cannot be read.
 */
export type ReadHint =
  | { kind: "usable"; bytes: Uint8Array }
  | { kind: "missing" }
  | { kind: "damaged" | "unusable"; reason: string; lengthBytes: number };

/**
 * Reads a hint file and compares it with its segment, as far as that is possible without reading the segment: the
 * segment is the truth. Whatever is wrong with the file, the segment is read instead.
 *
 * @param of the segment, with the salt of its header and the size of its file
 */
export async function readHint(
  fileSystem: FileSystem,
  directory: string,
  of: SealedSegment & { salt: number; segmentBytes: number },
): Promise<ReadHint> {
  let bytes: Uint8Array;
  try {
    bytes = await readWholeFile(fileSystem, `${directory}/${hintName(of.base)}`);
  } catch (error) {
    if (!(error instanceof FileSystemError)) throw error;
    return isMissing(error) ? { kind: "missing" } : { kind: "unusable", reason: error.message, lengthBytes: 0 };
  }
  const lengthBytes = bytes.length;
  const unusable = (reason: string): ReadHint => ({ kind: "unusable", reason, lengthBytes });
  try {
    const head = verifyHint(bytes);
    if (head === null) return unusable(`it is not of format version ${HINT_FORMAT_VERSION}`);
    if (head.base !== of.base || head.salt !== of.salt) return unusable("it is of another segment");
    if (head.lastSequence !== of.nextBase - 1 || head.segmentBytes !== of.segmentBytes) {
      const [last, size] = [of.nextBase - 1, of.segmentBytes];
      return unusable(
        `it is of a segment of ${head.segmentBytes} bytes that ends at ${head.lastSequence}; this one has ${size} and ends at ${last}`,
      );
    }
    return { kind: "usable", bytes };
  } catch (error) {
    if (!(error instanceof HintDamageError)) throw error;
    return { kind: "damaged", reason: error.message, lengthBytes };
  }
}

/**
 * The newest segment with an intact opening state, by its place among the bases. The segments before it may be taken
 * from hints: the opening state says what hints leave out. If there is no such segment, all are read.
 */
export async function firstToRead(
  fileSystem: FileSystem,
  directory: string,
  bases: readonly number[],
): Promise<number> {
  for (let at = bases.length - 1; at > 0; at--) {
    const base = bases[at]!;
    const name = segmentName(base);
    const isIntact = await withFile(fileSystem, `${directory}/${name}`, async (file) => {
      const { header } = await readSegmentHeader(file);
      const sizeBytes = await file.size();
      if (header === null || header.base !== base || sizeBytes < SEGMENT_HEADER_BYTES) return false;
      const endSequence = bases[at + 1] ?? Number.POSITIVE_INFINITY;
      const scan = scanSegment({ file, name, base, salt: header.salt, endSequence, sizeBytes });
      const first = await scan.next();
      return first.done !== true && first.value.kind === "opening";
    });
    if (isIntact) return at;
  }
  return 0;
}
