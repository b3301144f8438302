/**
 * The runs that changed after a mark, in order of their changes. `updated_since` finds the same runs. They come in batches, the earliest first.
 *
 * No two runs have the same time of update: the service's clock never gives one time twice, and the log's order is that of its times. So the time of
 * the last run that the follower was told is a mark. All that changes later has a later time, and nothing at the mark is still to come. Nothing is
 * missed, and only the mark has to be remembered.
 */
import { LIMITS } from "../../../core/limits.js";
import { pageOf, type ReadRunPage } from "../run-page.js";
import type { ViewTables } from "../view-fold.js";
import type { RunFilter } from "../view-runs.js";

/** A batch ends with the run that reaches one of these. The bytes are estimated. */
const MOST_RUNS = 32;
const MOST_BYTES = 32 * 1024;
const ENTRY_BYTES = 1024;

/** A follower of the runs of a filter, and how far it has come. */
export interface RunFollower {
  readonly filter: RunFilter;
  /** It has been told of everything up to this time, except runs that changed again since. */
  readonly markUs: number;
  /** The last mark at which it had been told of every run (status-times.ts). -1 if that is not known. */
  readonly currentUs: number;
}

export interface RunChanges {
  /** Where to go on. */
  readonly markUs: number;
  /** True when nothing else has changed: a follower that gets these runs has been told of every run. */
  readonly isLast: boolean;
  /** For each run of the batch, when it was updated, ascending. */
  readonly timesUs: readonly number[];
  /** The list entries of some of these runs as JSON, by their places in `timesUs`. Call it at once: the entries show the runs as they are now. */
  read(places: readonly number[], baseUrl: string): Promise<ReadRunPage>;
}

/** As `View.runChanges`. @param version differs after each change of a run */
export function runChangesOf(
  tables: ViewTables,
  version: number,
  { filter, markUs, currentUs }: RunFollower,
): RunChanges {
  const { runs, activeRuns } = tables;
  const { ordinals, isLast } = runs.changedAfter(markUs, version);
  const told: number[] = [];
  let lookedAt = 0;
  for (let bytes = 0; lookedAt < ordinals.length && told.length < MOST_RUNS && bytes < MOST_BYTES; lookedAt++) {
    const ordinal = ordinals[lookedAt]!;
    if (!runs.concerns(ordinal, filter, currentUs)) continue;
    told.push(ordinal);
    const hasEnded = runs.location(ordinal) !== undefined;
    bytes += hasEnded
      ? ENTRY_BYTES
      : ENTRY_BYTES + Math.min(activeRuns.state(runs.id(ordinal)).documentBytes, LIMITS.runMetadataBytes);
  }
  return {
    markUs: lookedAt === 0 ? markUs : runs.updatedAtUs(ordinals[lookedAt - 1]!),
    isLast: isLast && lookedAt === ordinals.length,
    timesUs: told.map((ordinal) => runs.updatedAtUs(ordinal)),
    read: (places, baseUrl) => {
      const some = places.map((place) => told[place]!);
      return pageOf(tables, some, baseUrl).read();
    },
  };
}
