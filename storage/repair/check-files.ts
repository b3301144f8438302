/** The part of a check that looks at files: files that records name, files that nothing names, and quarantined files. */
import { type CaptureInventory, captureFiles } from "../captures/capture-inventory.js";
import type { DataDirectory } from "../disk/data-directory.js";
import { orWhereMissing } from "../disk/file-system-error.js";
import type { FileSystem } from "../disk/file-system-interface.js";
import { TEMPORARY_SUFFIX } from "../disk/whole-files.js";
import { hintBaseOf } from "../log/hint-format.js";
import { segmentBaseOf } from "../log/segment.js";
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
 * Reports each capture file that no record names. Its message was never acknowledged, or its record is lost, or the
 * record is in a part of the log that could not be read.
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
  message: "no record names this file: it was never acknowledged, or its record is lost",
} as const;
const UNJUDGED = {
  code: "capture_unjudged",
  message: "no readable record names this file; an unreadable one may name it",
} as const;

/** Reports files beside segments and hint files that do not belong to the service. */
export async function findNeedlessFiles(
  fileSystem: FileSystem,
  { metaPath }: DataDirectory,
  add: (finding: CheckFinding) => void,
): Promise<void> {
  for (const { name, sizeBytes, isDirectory } of await entriesIn(fileSystem, metaPath)) {
    const isKnown = (segmentBaseOf(name) ?? hintBaseOf(name)) !== undefined || name.endsWith(TEMPORARY_SUFFIX);
    if (isDirectory || !isKnown) add(unknown(`meta/${name}`, sizeBytes));
  }
}

function unknown(file: string, lengthBytes: number): CheckFinding {
  return { code: "file_unknown", file, offset: 0, lengthBytes, message: "the file does not belong to the service" };
}

/** Reports each file in the quarantine folder. */
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
      "an earlier start found these bytes damaged and kept a copy: export what you need, then remove the file";
    add({ code: "quarantined", file: `quarantine/${name}`, offset: 0, lengthBytes: sizeBytes, message });
  }
  return totals;
}

/** Files of a folder by name, with their sizes; none if there is no folder. */
export async function filesIn(fileSystem: FileSystem, path: string): Promise<{ name: string; sizeBytes: number }[]> {
  const entries = await entriesIn(fileSystem, path);
  return entries.filter(({ isDirectory }) => !isDirectory).map(({ name, sizeBytes }) => ({ name, sizeBytes }));
}

interface FolderEntry {
  name: string;
  isDirectory: boolean;
  /** 0 for a folder, and for a link to nothing. */
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
