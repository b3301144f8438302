import type { DataDirectory } from "../../../storage/disk/data-directory.js";
import type { FileSystem } from "../../../storage/disk/file-system.js";
import { Log } from "../../../storage/log/log.js";
import { forEachRecord } from "../../../storage/log/log-batch.js";
import { isKnownRecordType } from "../../../storage/records/record-index.js";
import { findLogEvidence } from "../../../storage/recovery/log-evidence.js";
import { RecorderState } from "../recorder-state.js";

/** A store that nobody serves, opened by a command. */
export interface StoredState {
  state: RecorderState;
  /** To be closed by the caller. */
  log: Log;
}

/**
 * Opens the log of a store and reads the recorder's state out of it. Null where there is no segment: what became of the log is for the next start
 * to say.
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
    understandsType: isKnownRecordType,
    evidence,
    openingState: () => state.openingState(),
    onRecords: (batch) => forEachRecord(batch, (record, location) => state.replay(record, location)),
  });
  return { state, log };
}
