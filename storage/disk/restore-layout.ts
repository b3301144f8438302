import { type DataDirectory, FORMAT_FILE, formatBytes } from "./data-directory.js";
import type { FileSystem } from "./file-system-interface.js";
import { replaceFile } from "./whole-files.js";

/**
 * Makes folders of a data directory again, and the file that names its format, if somebody has removed them while the service runs. It does not make
 * the log's folder: an empty one would hide at the next start that the log was lost.
 *
 * @returns the paths of what it made
 * @throws FileSystemError
 */
export async function restoreLayout(
  fileSystem: FileSystem,
  { path, capturesPath, quarantinePath, storeId }: Omit<DataDirectory, "release" | "metaPath">,
): Promise<string[]> {
  const restored: string[] = [];
  for (const folder of [capturesPath, quarantinePath]) {
    if ((await fileSystem.statusOf(folder))?.kind === "directory") continue;
    await fileSystem.makeDirectory(folder);
    restored.push(folder);
  }
  if (restored.length > 0) await fileSystem.syncDirectory(path);
  const format = `${path}/${FORMAT_FILE}`;
  if ((await fileSystem.statusOf(format))?.kind !== "file") {
    await replaceFile(fileSystem, path, FORMAT_FILE, formatBytes(storeId));
    restored.push(format);
  }
  return restored;
}
