/** What the store has done about its own size since the process started: sums that only grow. */
export interface StoreCounters {
  /** Captures that retention has removed, once their files are unlinked, durably. */
  retention: { runs: number; files: number; bytes: number };
  /** Segments of the log that compaction has written anew, and how many bytes smaller they are. */
  compaction: { segments: number; bytes: number };
}
