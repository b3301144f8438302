import type { DataDirectory } from "./data-directory.js";
import type { FileSystem } from "./file-system-interface.js";

/**
 * Makes folders of a data directory again that somebody has removed while the service runs. It does not make the log's folder: an empty one would
 * hide at the next start that the log was lost.
 *
 * @returns the folders that it made
 * @throws FileSystemError
 */
export async function restoreLayout(
  fileSystem: FileSystem,
  { path, capturesPath, quarantinePath }: Omit<DataDirectory, "release" | "metaPath">,
): Promise<string[]> {
  const restored: string[] = [];
  for (const folder of [capturesPath, quarantinePath]) {
    if ((await fileSystem.statusOf(folder))?.kind === "directory") continue;
    await fileSystem.makeDirectory(folder);
    restored.push(folder);
  }
  if (restored.length > 0) await fileSystem.syncDirectory(path);
  return restored;
}
