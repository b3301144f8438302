import { createServiceClock } from "../../../core/service-clock.js";
import type { DataDirectory } from "../../../storage/disk/data-directory.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { encodeChanges } from "../../../storage/records/change-record.js";
import { openStoredState } from "./stored-state.js";

/** What a store knows about a producer. */
export interface StoredProducer {
  name: string;
  /** Its last sequence number that is stored. */
  committed: number;
  /** Time of its last record, UTC in microseconds; 0 if the store does not say. */
  lastUsedUs: number;
}

/**
 * `producers`: the one that has been unused longest comes first. `removed`: those of the given names that were known.
 */
export interface ProducersOutcome {
  producers: StoredProducer[];
  removed: string[];
}

/**
 * Reads the producer names of a stopped store and durably forgets those in `remove`.
 *
 * @throws StorageError, FileSystemError
 */
export async function readProducers(
  fileSystem: FileSystem,
  directory: DataDirectory,
  { remove, wallUs }: { remove: readonly string[]; wallUs(): number },
): Promise<ProducersOutcome> {
  const stored = await openStoredState(fileSystem, directory);
  if (stored === null) return { producers: [], removed: [] };
  const { state, log } = stored;
  try {
    const producers = Array.from(state.producers.used(), ({ name, committed, lastUsedUs }) => {
      return { name, committed, lastUsedUs };
    });
    producers.sort((a, b) => a.lastUsedUs - b.lastUsedUs || (a.name < b.name ? -1 : 1));
    const removed = remove.filter((name) => producers.some((producer) => producer.name === name));
    if (removed.length > 0) {
      const clock = createServiceClock(wallUs, Math.max(state.lastTimeUs, log.lastTimeUs));
      const changes = removed.map((name) => ({ kind: "producer_forgotten", name }) as const);
      const sequence = log.append({ ...encodeChanges(null, changes, undefined), timeUs: clock.tick() });
      await log.whenDurable(sequence);
    }
    return { producers, removed };
  } finally {
    await log.close();
  }
}
