import type { DataDirectory } from "../../../storage/disk/data-directory.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { createSegment, encodeSegmentStart } from "../../../storage/log/segment.js";
import { randomSalt } from "../../../storage/recovery/recovery.js";
import { openStoredState } from "./stored-state.js";

/** Both times are in microseconds since the Unix epoch. */
export interface ClockReset {
  fromUs: number;
  toUs: number;
}

/**
 * Sets the clock of a stopped store back to the machine's, if it is ahead. That happens when the machine's clock was
 * once set to another year. A new segment begins, and its start says where times go on. Records keep their times and
 * ids. So `updated_at` increases strictly between two resets, but not across one.
 *
 * @returns null if the store's clock is not ahead: nothing was changed
 * @throws StorageError, FileSystemError
 */
export async function resetClock(
  fileSystem: FileSystem,
  directory: DataDirectory,
  wallUs: number,
): Promise<ClockReset | null> {
  const stored = await openStoredState(fileSystem, directory);
  if (stored === null) return null;
  const { state, log } = stored;
  // Closing makes everything in the log durable. It must be durable before a new segment begins.
  await log.close();
  const { nextSequence: base } = log;
  const fromUs = Math.max(state.lastTimeUs, log.lastTimeUs);
  if (fromUs <= wallUs) return null;
  state.resetClock(wallUs);
  const salt = randomSalt();
  const start = encodeSegmentStart({ base, salt, openingState: state.openingState(), timeUs: wallUs });
  const segment = await createSegment(fileSystem, directory.metaPath, base, salt, start);
  await segment.file.close();
  return { fromUs, toUs: wallUs };
}
