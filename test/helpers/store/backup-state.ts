import { backupStore } from "../../../storage/backup/backup-store.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { checkStore } from "../../../storage/repair/check-store.js";
import { inspectStore } from "../../../storage/repair/inspect-store.js";
import { RecordVerifier, runOf } from "../../../storage/repair/record-verifier.js";
import { readStore, removedCaptures } from "../../../storage/repair/store-reading.js";

/** What `check` says of a store, without its lock, in this process. */
export async function checkedCopy(path: string) {
  const { dataDirectory, fileSystem, servedBy } = await readStore(path);
  return await checkStore({
    dataDirectory,
    fileSystem,
    isServed: servedBy !== null,
    removedSince: () => (servedBy === null ? Promise.resolve([]) : removedCaptures(path)),
    ...new RecordVerifier().inspection,
  });
}

/** How many records each run has. */
export async function recordsOfRuns(path: string): Promise<Map<string, number>> {
  const runs = new Map<string, number>();
  await inspectStore({
    ...(await readStore(path)),
    selects: (record) => {
      const run = runOf(record);
      if (run !== null) runs.set(run, (runs.get(run) ?? 0) + 1);
      return false;
    },
    describe: () => null,
    onItem: () => {},
  });
  return runs;
}

/** A backup in this process, on a file system of which some methods are replaced. */
export function backupOn(methods: Partial<typeof nodeFileSystem>, data: string, to: string) {
  return backupStore({ data, to, fileSystem: { ...nodeFileSystem, ...methods } });
}
