/** What the service has done to keep the store small since the process started. The sums only grow. */
export interface StoreCounters {
  /** Captures that retention has removed. They count once their files are durably unlinked. */
  retention: { runs: number; files: number; bytes: number };
}
