import { createServiceClock } from "../../../core/service-clock.js";
import type { DataDirectory } from "../../../storage/disk/data-directory.js";
import type { FileSystem } from "../../../storage/disk/file-system.js";
import { encodeChanges } from "../../../storage/records/change-record.js";
import { openStoredState } from "./stored-state.js";

/** A producer's name, as a store knows it. */
export interface StoredProducer {
  name: string;
  /** Its last sequence number that is stored. */
  committed: number;
  /** How many of its queues are known (cell-link.md, Session). */
  instances: number;
  /** Time of its last record, UTC in microseconds; 0 where the store does not say. */
  lastUsedUs: number;
}

/** The producer names of a store that nobody serves, longest unused first; of `remove` those that it has are forgotten, durably. */
export interface ProducersOutcome {
  producers: StoredProducer[];
  removed: string[];
}

/** @throws StorageError, FileSystemError */
export async function readProducers(
  fileSystem: FileSystem,
  directory: DataDirectory,
  { remove, wallUs }: { remove: readonly string[]; wallUs(): number },
): Promise<ProducersOutcome> {
  const stored = await openStoredState(fileSystem, directory);
  if (stored === null) return { producers: [], removed: [] };
  const { state, log } = stored;
  try {
    const producers = Array.from(state.producers.used(), ({ name, committed, instances, lastUsedUs }) => {
      return { name, committed, instances: instances.size, lastUsedUs };
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
