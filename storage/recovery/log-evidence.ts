/**
 * Finds what proves, beside the log itself, that the log held records. So a log that ends too early, or is gone, is never taken for a complete one
 * or for a new store.
 */
import type { DataDirectory } from "../disk/data-directory.js";
import type { FileSystem } from "../disk/file-system-interface.js";
import { replaceFile, TEMPORARY_SUFFIX } from "../disk/whole-files.js";
import type { LogEvidence } from "../log/log-options.js";
import { snapshotsIn } from "../snapshot/snapshot-folder.js";
import { isOfLog, segmentBases } from "../snapshot/snapshot-place.js";
import { SnapshotReader } from "../snapshot/snapshot-reader.js";

/** A file in the quarantine folder: it says that a log of unknown length was missing. If its length is known, the gap in the numbers says so. */
const NOTE_FILE = "log_lost.json";

/**
 * The newest snapshot proves up to which number records were durable, whatever else is wrong with it: no snapshot is made before its records are
 * durable (see `SnapshotScheduleOptions.makeDurable`). Without any segment, a file that only a store with a log can have proves that there was one.
 * Null when there is no proof.
 */
export async function findLogEvidence(fileSystem: FileSystem, directory: DataDirectory): Promise<LogEvidence | null> {
  const hasFolder = await fileSystem.exists(directory.snapshotPath);
  const newest = hasFolder ? (await snapshotsIn(fileSystem, directory.snapshotPath)).newest : null;
  const head = newest === null ? null : await headOf(fileSystem, `${directory.snapshotPath}/${newest}`);
  if (head !== null && (await isOfLog(fileSystem, directory.metaPath, head))) {
    return { sequence: head.position.sequence, source: `snapshot/${newest}` };
  }
  if ((await segmentBases(fileSystem, directory.metaPath)).length > 0) return null;
  const { capturesPath, quarantinePath, snapshotPath } = directory;
  for (const [folder, path] of Object.entries({
    captures: capturesPath,
    quarantine: quarantinePath,
    snapshot: snapshotPath,
  })) {
    if (!(await fileSystem.exists(path))) continue;
    const names = (await fileSystem.readDirectory(path)).map(({ name }) => name);
    const [first] = names.filter((name) => !name.endsWith(TEMPORARY_SUFFIX)).sort();
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

async function headOf(fileSystem: FileSystem, path: string) {
  try {
    const reader = await SnapshotReader.open(fileSystem, path);
    await reader.close();
    return reader.head;
  } catch {
    // Whoever loads the file reports what is wrong with it.
    return null;
  }
}
