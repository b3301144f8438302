import type { LogRecord } from "../../../storage/log/committed-batch.js";
import { type CheckResult, checkStore } from "../../../storage/repair/check-store.js";
import { consistentInspection } from "../consistency/record-consistency.js";
import type { SimulatedDisk } from "../disk/simulated-disk.js";

/**
 * The shipped check, of a store at `directory` on a simulated disk. Throws if records contradict one another.
 *
 * @param onRecord called for each record
 */
export async function checkDisk(
  disk: SimulatedDisk,
  directory: string,
  onRecord: (record: LogRecord) => void = () => {},
): Promise<CheckResult> {
  const { inspection, assertConsistent } = consistentInspection(onRecord);
  const dataDirectory = {
    path: directory,
    metaPath: `${directory}/meta`,
    capturesPath: `${directory}/captures`,
    quarantinePath: `${directory}/quarantine`,
    storeId: null,
    release: async () => {},
  };
  // Opening a data directory makes folders that a first start had not made yet. Here a copy gets them, not the disk.
  const folders = [dataDirectory.capturesPath, dataDirectory.quarantinePath];
  const areThere = await Promise.all(folders.map((folder) => disk.exists(folder)));
  const fileSystem = areThere.every(Boolean) ? disk : disk.copy();
  if (fileSystem !== disk) for (const folder of folders) await fileSystem.makeDirectory(folder);
  const result = await checkStore({
    dataDirectory,
    fileSystem,
    ...inspection,
  });
  assertConsistent(result);
  return result;
}
