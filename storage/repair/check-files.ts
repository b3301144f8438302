/** What a check says of files as such: those that records name, those that nothing names, and what quarantine keeps. */
import { type CaptureInventory, captureFiles } from "../captures/capture-inventory.js";
import type { DataDirectory } from "../disk/data-directory.js";
import { type FileSystem, isMissing, TEMPORARY_SUFFIX } from "../disk/file-system.js";
import { segmentBaseOf } from "../log/segment.js";
import { snapshotSequenceOf } from "../snapshot/snapshot-format.js";
import type { CheckFinding } from "./check-finding.js";

export interface FileTotals {
  files: number;
  bytes: number;
}

export async function totalsOfCaptures(fileSystem: FileSystem, { capturesPath }: DataDirectory): Promise<FileTotals> {
  const totals = { files: 0, bytes: 0 };
  for await (const { sizeBytes } of captureFiles(fileSystem, capturesPath)) {
    totals.files++;
    totals.bytes += sizeBytes;
  }
  return totals;
}

/**
 * Tells each capture file that no record names: it holds nothing that was acknowledged and is still known, unless the record is in a part
 * of the log that could not be read.
 */
export async function findUnnamedCaptures(
  fileSystem: FileSystem,
  { capturesPath }: DataDirectory,
  inventory: CaptureInventory,
  isLogRead: boolean,
  add: (finding: CheckFinding) => void,
): Promise<void> {
  for await (const { path, sizeBytes, runId } of captureFiles(fileSystem, capturesPath)) {
    if (inventory.isNamed(path)) continue;
    const file = `captures/${path}`;
    if (runId === null) add(unknown(file, sizeBytes));
    else add({ ...(isLogRead ? UNNAMED : UNJUDGED), file, offset: 0, lengthBytes: sizeBytes });
  }
}

const UNNAMED = {
  code: "capture_unnamed",
  message: "no record names these bytes: what they were a part of was never acknowledged, or is lost",
} as const;
const UNJUDGED = {
  code: "capture_unjudged",
  message: "no record that could be read names these bytes; whether one of those that could not does cannot be judged",
} as const;

/** Tells what stands beside segments and snapshots and is none of the service's, and each snapshot but the newest. */
export async function findNeedlessFiles(
  fileSystem: FileSystem,
  { metaPath, snapshotPath }: DataDirectory,
  add: (finding: CheckFinding) => void,
): Promise<void> {
  for (const { name, sizeBytes, isDirectory } of await entriesIn(fileSystem, metaPath)) {
    if (isDirectory || !(segmentBaseOf(name) !== undefined || name.endsWith(TEMPORARY_SUFFIX)))
      add(unknown(`meta/${name}`, sizeBytes));
  }
  const entries = await entriesIn(fileSystem, snapshotPath);
  const isSnapshot = ({ name, isDirectory }: FolderEntry) => !isDirectory && snapshotSequenceOf(name) !== undefined;
  const newest = entries.findLast(isSnapshot);
  for (const entry of entries) {
    const { name, sizeBytes, isDirectory } = entry;
    const file = `snapshot/${name}`;
    if (!isSnapshot(entry)) {
      if (isDirectory || !name.endsWith(TEMPORARY_SUFFIX)) add(unknown(file, sizeBytes));
    } else if (entry !== newest) {
      const message = `not looked into: ${newest?.name} is the newest snapshot, and the next start removes all others`;
      add({ code: "snapshot_left", file, offset: 0, lengthBytes: sizeBytes, message });
    }
  }
}

function unknown(file: string, lengthBytes: number): CheckFinding {
  return { code: "file_unknown", file, offset: 0, lengthBytes, message: "none of the service's files" };
}

/** Tells each file of the quarantine folder. */
export async function findQuarantined(
  fileSystem: FileSystem,
  { quarantinePath }: DataDirectory,
  add: (finding: CheckFinding) => void,
): Promise<FileTotals> {
  const totals = { files: 0, bytes: 0 };
  for (const { name, sizeBytes } of await filesIn(fileSystem, quarantinePath)) {
    totals.files++;
    totals.bytes += sizeBytes;
    const message =
      "bytes that an earlier start found damaged, kept as they were: export what you need, and remove the file";
    add({ code: "quarantined", file: `quarantine/${name}`, offset: 0, lengthBytes: sizeBytes, message });
  }
  return totals;
}

/** Files of a folder by name, with their sizes; none where there is no folder. */
export async function filesIn(fileSystem: FileSystem, path: string): Promise<{ name: string; sizeBytes: number }[]> {
  const entries = await entriesIn(fileSystem, path);
  return entries.filter(({ isDirectory }) => !isDirectory).map(({ name, sizeBytes }) => ({ name, sizeBytes }));
}

interface FolderEntry {
  name: string;
  isDirectory: boolean;
  /** 0 of a folder, and of a link to nothing. */
  sizeBytes: number;
}

async function entriesIn(fileSystem: FileSystem, path: string): Promise<FolderEntry[]> {
  const entries: FolderEntry[] = [];
  for (const { name, isDirectory } of await orWhereMissing(fileSystem.readDirectory(path), [])) {
    const sizeBytes = isDirectory ? 0 : await orWhereMissing(fileSystem.sizeOf(`${path}/${name}`), 0);
    entries.push({ name, isDirectory, sizeBytes });
  }
  return entries.sort((left, right) => (left.name < right.name ? -1 : 1));
}

async function orWhereMissing<T>(answer: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (isMissing(error)) return otherwise;
    throw error;
  }
}
