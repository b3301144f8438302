import type { DataDirectory } from "../disk/data-directory.js";
import { FileSystemError } from "../disk/file-system-error.js";
import type { FileSystem } from "../disk/file-system-interface.js";
import { withFile } from "../disk/whole-files.js";
import { hintBaseOf, hintName } from "../log/hint-format.js";
import type { SealedSegment } from "../log/log-options.js";
import { readSegmentHeader, segmentBaseOf, segmentName } from "../log/segment.js";
import { RecordDecodeError } from "../records/record-decode-error.js";
import { makeHint } from "../recovery/make-hint.js";
import { type ReadHint, readHint } from "../recovery/read-hint.js";
import { StorageError } from "../storage-error.js";
import { filesIn } from "./check-files.js";
import type { CheckFinding, CheckFindingCode } from "./check-finding.js";

/**
 * Compares the hint file of each sealed segment, byte for byte, with one that is made anew from the segment. A damaged
 * segment has none: the check of the log reports what is wrong with it.
 */
export async function checkHints(
  fileSystem: FileSystem,
  { metaPath }: DataDirectory,
  add: (finding: CheckFinding, isDamage: boolean) => void,
): Promise<void> {
  const files = await filesIn(fileSystem, metaPath);
  const bases = files.flatMap(({ name }) => segmentBaseOf(name) ?? []).sort((a, b) => a - b);
  const sealed = new Set(bases.slice(0, -1));
  const find = (code: CheckFindingCode, name: string, lengthBytes: number, message: string, isDamage = false): void => {
    add({ code, file: `meta/${name}`, offset: 0, lengthBytes, message }, isDamage);
  };
  for (const { name, sizeBytes } of files) {
    const base = hintBaseOf(name);
    if (base !== undefined && !sealed.has(base))
      find("hint_unusable", name, sizeBytes, "no sealed segment has this number; the next start removes it");
  }
  for (const [at, base] of bases.slice(0, -1).entries()) {
    const segment = { base, nextBase: bases[at + 1] as number };
    const made = await madeAnew({ fileSystem, directory: metaPath, ...segment });
    const name = hintName(base);
    const hint = await hintOf(fileSystem, metaPath, segment);
    if (hint?.kind === "damaged") find("hint_damaged", name, hint.lengthBytes, `${hint.reason}; ${MADE_AGAIN}`, true);
    else if (hint?.kind === "unusable") find("hint_unusable", name, hint.lengthBytes, `${hint.reason}; ${MADE_AGAIN}`);
    if (made === null) continue;
    if (hint?.kind === "missing") find("hint_missing", name, 0, `the segment has no hint file; ${MADE_AGAIN}`);
    if (hint?.kind === "usable" && !made.every((byte, index) => byte === hint.bytes[index]))
      find("hint_differs", name, hint.bytes.length, "it says something else than its segment; remove the file", true);
  }
}

const MADE_AGAIN = "nothing is lost, and the next start makes it again";

/** Null for a segment that gets no hint file. */
async function madeAnew(options: Parameters<typeof makeHint>[0]): Promise<Uint8Array | null> {
  try {
    const made = await makeHint(options);
    return "bytes" in made ? made.bytes : null;
  } catch (error) {
    if (error instanceof FileSystemError || error instanceof StorageError || error instanceof RecordDecodeError)
      return null;
    throw error;
  }
}

/** Null when the segment's header cannot be read. */
async function hintOf(fileSystem: FileSystem, directory: string, segment: SealedSegment): Promise<ReadHint | null> {
  try {
    const of = await withFile(fileSystem, `${directory}/${segmentName(segment.base)}`, async (file) => {
      const { header } = await readSegmentHeader(file);
      return header && { ...segment, salt: header.salt, segmentBytes: await file.size() };
    });
    return of && (await readHint(fileSystem, directory, of));
  } catch (error) {
    if (error instanceof FileSystemError) return null;
    throw error;
  }
}
