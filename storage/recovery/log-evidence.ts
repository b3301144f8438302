/**
 * Finds what proves, beside the log itself, that the log held records. So a log that ends too early is never taken for
 * a complete one, and a store whose log is gone is never taken for a new store.
 */
import type { DataDirectory } from "../disk/data-directory.js";
import type { FileSystem } from "../disk/file-system-interface.js";
import { readWholeFile, replaceFile, TEMPORARY_SUFFIX, withFile } from "../disk/whole-files.js";
import { type HintedSegment, hintBaseOf, hintName, verifyHint } from "../log/hint-format.js";
import type { LogEvidence } from "../log/log-options.js";
import { readSegmentHeader, segmentBaseOf, segmentName } from "../log/segment.js";

/** A file in the quarantine folder. It says that a log of unknown length was missing. A known length shows as a gap in the sequence numbers. */
const NOTE_FILE = "log_lost.json";

/**
 * The newest hint file proves up to which sequence number records were durable, whatever else is wrong with it: no hint file is written before its
 * segment is durable. If there is no segment at all, a file that only a store with a log can have proves that there was a log. Null when there is no
 * proof.
 */
export async function findLogEvidence(fileSystem: FileSystem, directory: DataDirectory): Promise<LogEvidence | null> {
  const { metaPath, capturesPath, quarantinePath } = directory;
  const names = (await fileSystem.readDirectory(metaPath)).map(({ name }) => name).sort();
  const newest = names.findLast((name) => hintBaseOf(name) !== undefined);
  const head = newest === undefined ? null : await headOf(fileSystem, metaPath, newest);
  if (head !== null) return { sequence: head.lastSequence, source: `meta/${newest}` };
  if (names.some((name) => segmentBaseOf(name) !== undefined)) return null;
  for (const [folder, path] of Object.entries({ captures: capturesPath, quarantine: quarantinePath })) {
    if (!(await fileSystem.exists(path))) continue;
    const entries = (await fileSystem.readDirectory(path)).map(({ name }) => name);
    const [first] = entries.filter((name) => !name.endsWith(TEMPORARY_SUFFIX)).sort();
    if (first !== undefined) return { sequence: 0, source: `${folder}/${first}` };
  }
  return null;
}

/** Leaves a durable note in the quarantine folder before a new log begins in place of a lost one of unknown length. */
export async function noteLostLog(
  fileSystem: FileSystem,
  { quarantinePath }: DataDirectory,
  { sequence, source }: LogEvidence,
  foundAt: string,
): Promise<void> {
  if (sequence > 0 || (await fileSystem.exists(`${quarantinePath}/${NOTE_FILE}`))) return;
  const note = { found_at: foundAt, message: `the log had no segment, but ${source} shows that it held records` };
  await replaceFile(fileSystem, quarantinePath, NOTE_FILE, new TextEncoder().encode(`${JSON.stringify(note)}\n`));
}

/** Null for a hint file that is damaged, or was made from another segment. The walk through the log reports what is wrong with it. */
async function headOf(fileSystem: FileSystem, metaPath: string, name: string): Promise<HintedSegment | null> {
  try {
    const head = verifyHint(await readWholeFile(fileSystem, `${metaPath}/${name}`));
    if (head === null || hintName(head.base) !== name) return null;
    const segment = `${metaPath}/${segmentName(head.base)}`;
    if (!(await fileSystem.exists(segment))) return head;
    const { header } = await withFile(fileSystem, segment, readSegmentHeader);
    return header === null || header.salt === head.salt ? head : null;
  } catch {
    return null;
  }
}
