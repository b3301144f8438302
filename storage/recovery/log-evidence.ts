/**
 * What tells, beside the log, that the log held records: so that a log which ends too early, or is not there at all, is never taken for
 * one that ends there, or for a new store.
 */
import type { DataDirectory } from "../disk/data-directory.js";
import { type FileSystem, replaceFile, TEMPORARY_SUFFIX } from "../disk/file-system.js";
import type { LogEvidence } from "../log/log-options.js";
import { snapshotsIn } from "../snapshot/snapshot-folder.js";
import { isOfLog, segmentBases } from "../snapshot/snapshot-place.js";
import { SnapshotReader } from "../snapshot/snapshot-reader.js";

/** In the quarantine folder: says that a log of unknown length was not there. A log of which the numbers are known tells it by its hole. */
const NOTE_FILE = "log_lost.json";

/**
 * The newest snapshot of this log says up to which number records were durable, since none is made before they are (see
 * `SnapshotScheduleOptions.makeDurable`), whatever else is wrong with it. Where there is no segment, any file that only a store with a log
 * can have says that there was one. Null when nothing says anything.
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

/** Leaves a note in the quarantine folder, durably, before a log begins anew in place of one of unknown length. */
export async function noteLostLog(
  fileSystem: FileSystem,
  { quarantinePath }: DataDirectory,
  { sequence, source }: LogEvidence,
  foundAt: string,
): Promise<void> {
  if (sequence > 0 || (await fileSystem.exists(`${quarantinePath}/${NOTE_FILE}`))) return;
  const note = { found_at: foundAt, message: `the log had no segment, and ${source} says that it held records` };
  await replaceFile(fileSystem, quarantinePath, NOTE_FILE, new TextEncoder().encode(`${JSON.stringify(note)}\n`));
}

async function headOf(fileSystem: FileSystem, path: string) {
  try {
    const reader = await SnapshotReader.open(fileSystem, path);
    await reader.close();
    return reader.head;
  } catch {
    // What is wrong with the file is for who loads it to say.
    return null;
  }
}
