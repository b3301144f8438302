import type { DiskPlace } from "../../disk/disk-place.js";

export interface SimulationReport extends SimulationCounts {
  /** What went wrong; nothing should. */
  faults: string[];
  /** What the strike of each life fell into, one life after the other; null where no strike fell. */
  struck: (DiskPlace | null)[];
  /** Openings that a failure or a full disk ended. */
  failedOpenings: number;
}

export type SimulationCounts = ReturnType<typeof noCounts>;

export function noCounts() {
  return {
    counts: {
      lives: 0,
      records: 0,
      acknowledged: 0,
      refused: 0,
      removedRuns: 0,
      fullDisks: 0,
      /** Lives in which a disk refused something for want of room. */
      refusedForRoom: 0,
      /** Lives that had failed, after which the service was started again while the machine went on. */
      restarts: 0,
      /** Openings that an error of a read ended. */
      unreadable: 0,
      /** Stores that were damaged at the end, each in one place. */
      damages: 0,
      /** Damaged stores whose damage no store can tell from a torn tail, or from what never was. */
      untold: 0,
      /** Hint files that were written, and segments that openings took from theirs. */
      hintsWritten: 0,
      hints: 0,
    },
    /** Ends of the machine or process, by what they fell into; `idle`: between operations. */
    crashes: {} as Partial<Record<DiskPlace | "idle", number>>,
    /** Failed syncs and writes. */
    errors: {} as Partial<Record<DiskPlace, number>>,
  };
}
