import type { DataDirectory } from "../../../storage/disk/data-directory.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { forEachRecord } from "../../../storage/log/committed-batch.js";
import { Log } from "../../../storage/log/log.js";
import { findLogEvidence } from "../../../storage/recovery/log-evidence.js";
import { RecorderState } from "../recorder-state.js";

/** A stopped store that a command has opened. */
export interface StoredState {
  state: RecorderState;
  /** The caller must close it. */
  log: Log;
}

/**
 * Opens the log of a stopped store and rebuilds the recorder's state from it.
 *
 * @returns null if there is no segment: the next start reports what happened to the log
 *
 * @throws StorageError, FileSystemError
 */
export async function openStoredState(fileSystem: FileSystem, directory: DataDirectory): Promise<StoredState | null> {
  const evidence = await findLogEvidence(fileSystem, directory);
  if (evidence?.sequence === 0) return null;
  const state = new RecorderState();
  const log = await Log.open({
    fileSystem,
    directory: directory.metaPath,
    quarantineDirectory: directory.quarantinePath,
    durability: "full",
    evidence,
    usesHints: true,
    openingState: () => state.openingState(),
    onRecords: (batch) => forEachRecord(batch, (record, location) => state.replay(record, location, batch.isHint)),
  });
  return { state, log };
}
