import { type FileSystem, TEMPORARY_SUFFIX } from "./file-system.js";
import { snapshotSequenceOf } from "./snapshot-format.js";

/** Names in the folder of snapshots: that of the newest, null when there is none, and what a crash left beside it. */
export async function snapshotsIn(
  fileSystem: FileSystem,
  directory: string,
): Promise<{ newest: string | null; left: string[] }> {
  const entries = await fileSystem.readDirectory(directory);
  const names = entries.filter(({ isDirectory }) => !isDirectory).map(({ name }) => name);
  const snapshots = names.filter((name) => snapshotSequenceOf(name) !== undefined).sort();
  const newest = snapshots.pop() ?? null;
  return { newest, left: [...snapshots, ...names.filter((name) => name.endsWith(TEMPORARY_SUFFIX))] };
}
