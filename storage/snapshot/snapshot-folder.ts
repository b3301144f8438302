import type { FileSystem } from "../disk/file-system-interface.js";
import { TEMPORARY_SUFFIX } from "../disk/whole-files.js";
import { snapshotSequenceOf } from "./snapshot-format.js";

/** Moves a snapshot to the quarantine folder, durably. */
export async function quarantineSnapshot(
  fileSystem: FileSystem,
  { snapshotPath, quarantinePath }: { snapshotPath: string; quarantinePath: string },
  name: string,
): Promise<void> {
  await fileSystem.rename(`${snapshotPath}/${name}`, `${quarantinePath}/${name}`);
  // The name that it gets before the one that it loses, so that it always has one. Should it keep both, the next start judges it anew,
  // and moves it again: the second sync saves no more than that.
  await fileSystem.syncDirectory(quarantinePath);
  await fileSystem.syncDirectory(snapshotPath);
}

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
