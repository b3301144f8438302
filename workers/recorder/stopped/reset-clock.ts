import type { DataDirectory } from "../../../storage/disk/data-directory.js";
import type { FileSystem } from "../../../storage/disk/file-system.js";
import { createSegment, encodeSegmentStart } from "../../../storage/log/segment.js";
import { randomSalt } from "../../../storage/recovery/recovery.js";
import { openStoredState } from "./stored-state.js";

/** Both in microseconds since the Unix epoch. */
export interface ClockReset {
  fromUs: number;
  toUs: number;
}

/**
 * Takes the clock of a store that is not served back to the machine's, where it is ahead of that: a machine whose clock was once set to another year has
 * left it there. A new segment begins, whose start says where times go on; records stay as they are, with their times and ids. So
 * `updated_at` is strictly increasing between two resets, and not across one.
 *
 * @returns null where it is not ahead, and nothing was changed
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
  // From here on everything that the log holds is durable, as it must be before a new segment.
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
