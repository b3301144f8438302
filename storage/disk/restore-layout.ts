import type { DataDirectory } from "./data-directory.js";
import type { FileSystem } from "./file-system.js";

/**
 * Makes anew the folders of a data directory that somebody has removed while it is served. Not the log's: an empty one would hide at the
 * next start that the log was lost.
 *
 * @returns the folders that it has made
 * @throws FileSystemError
 */
export async function restoreLayout(
  fileSystem: FileSystem,
  { path, capturesPath, quarantinePath, snapshotPath }: Omit<DataDirectory, "release" | "metaPath">,
): Promise<string[]> {
  const restored: string[] = [];
  for (const folder of [capturesPath, quarantinePath, snapshotPath]) {
    if ((await fileSystem.statusOf(folder))?.kind === "directory") continue;
    await fileSystem.makeDirectory(folder);
    restored.push(folder);
  }
  if (restored.length > 0) await fileSystem.syncDirectory(path);
  return restored;
}
