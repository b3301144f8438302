import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Change } from "../../core/link/change.js";
import type { RunState } from "../../core/run/run-state.js";
import { openDataDirectory } from "../../storage/disk/data-directory.js";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { Log } from "../../storage/log/log.js";
import { encodeChanges } from "../../storage/records/change-record.js";
import { RecorderState } from "../../workers/recorder/recorder-state.js";
import type { BenchmarkContext } from "../harness/benchmark.js";

/** How many bytes may wait in the log before the builder pauses to let it write. */
const PENDING_BYTES = 8 * 1024 * 1024;

/** Writes one record. @param run the state after the changes; undefined if they do not need it */
export type Append = (changes: readonly Change[], run: RunState | undefined, timeUs: number) => Promise<void>;

/**
 * Makes a store unless it is there, and gives its path. It is written under another name, and renamed when whole. The product encodes the
 * records and writes the log; only the link is left out.
 */
export async function prepareStore(
  { storesDirectory, log }: Pick<BenchmarkContext, "storesDirectory" | "log">,
  name: string,
  fill: (append: Append, state: RecorderState) => Promise<void>,
  finish: (path: string) => Promise<void> = async () => {},
): Promise<string> {
  const path = join(storesDirectory, name);
  if (existsSync(path)) return path;
  const startMs = performance.now();
  const unfinished = `${path}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(storesDirectory, { recursive: true });
  const directory = await openDataDirectory({ path: unfinished, creates: true, fileSystem: nodeFileSystem });
  const state = new RecorderState();
  const records = await Log.open({
    fileSystem: nodeFileSystem,
    directory: directory.metaPath,
    quarantineDirectory: directory.quarantinePath,
    durability: "none",
    openingState: () => state.openingState(),
    onRecords: () => {},
  });
  await fill(async (changes, run, timeUs) => {
    const sequence = records.append({ ...encodeChanges(null, changes, run), timeUs });
    state.apply(null, changes, timeUs);
    if (records.pendingBytes > PENDING_BYTES) await records.whenCommitted(sequence);
  }, state);
  await records.close();
  await directory.release();
  await finish(unfinished);
  renameSync(unfinished, path);
  log(`the store ${name} was made in ${((performance.now() - startMs) / 1000).toFixed(1)} s`);
  return path;
}
