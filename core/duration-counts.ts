/** Upper bounds in seconds, from a look-up in memory to a disk or a client in trouble. One more bucket without a bound follows. */
export const DURATION_BOUNDS_SECONDS = [
  0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
] as const;

/** Durations counted by bucket. It is plain data, so it can be posted to another thread, and counting allocates nothing. */
export interface DurationCounts {
  /** One count for each bound, and one for durations beyond the last bound. Not cumulative. */
  counts: number[];
  sumSeconds: number;
}

export function createDurationCounts(): DurationCounts {
  return { counts: new Array(DURATION_BOUNDS_SECONDS.length + 1).fill(0), sumSeconds: 0 };
}

export function countDuration(into: DurationCounts, seconds: number): void {
  const bounds = DURATION_BOUNDS_SECONDS;
  let bucket = 0;
  while (bucket < bounds.length && seconds > (bounds[bucket] as number)) bucket++;
  into.counts[bucket] = (into.counts[bucket] as number) + 1;
  into.sumSeconds += seconds;
}
