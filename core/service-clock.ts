/**
 * The one clock of the service. Every time it gives is max(wall, last + 1 µs), and `last` comes back from the log at start:
 * so times are strictly increasing across all records, through restarts and wall clocks that step back.
 */
export interface ServiceClock {
  /** The next time, in microseconds since the Unix epoch; above every one before. */
  tick(): number;
  readonly lastUs: number;
}

export function createServiceClock(wallUs: () => number, lastUs = 0): ServiceClock {
  let last = lastUs;
  return {
    tick() {
      last = Math.max(Math.floor(wallUs()), last + 1);
      return last;
    },
    get lastUs() {
      return last;
    },
  };
}

/** The wall clock in microseconds, of the system's millisecond resolution: `tick` fills in between. */
export function wallClockUs(): number {
  return Date.now() * 1000;
}
