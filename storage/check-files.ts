/** What a check says of files as such: those that records name, those that nothing names, and what quarantine keeps. */
import { type CaptureInventory, captureFiles } from "./capture-inventory.js";
import type { CheckFinding } from "./check-finding.js";
import type { DataDirectory } from "./data-directory.js";
import { type FileSystem, isMissing } from "./file-system.js";

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

/** Tells each capture file that no record names: it holds nothing that was acknowledged and is still known. */
export async function findUnnamedCaptures(
  fileSystem: FileSystem,
  { capturesPath }: DataDirectory,
  inventory: CaptureInventory,
  add: (finding: CheckFinding) => void,
): Promise<void> {
  for await (const { path, sizeBytes, runId } of captureFiles(fileSystem, capturesPath)) {
    if (inventory.isNamed(path)) continue;
    const [code, message] =
      runId === null
        ? ["file_unknown", "none of the service's files"]
        : [
            "capture_unnamed",
            `no record names these bytes: what they were a part of was never acknowledged, or is lost`,
          ];
    add({ code, file: `captures/${path}`, offset: 0, lengthBytes: sizeBytes, message });
  }
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
  const files: { name: string; sizeBytes: number }[] = [];
  try {
    for (const { name, isDirectory } of await fileSystem.readDirectory(path)) {
      if (!isDirectory) files.push({ name, sizeBytes: await fileSystem.sizeOf(`${path}/${name}`) });
    }
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  return files.sort((left, right) => (left.name < right.name ? -1 : 1));
}
