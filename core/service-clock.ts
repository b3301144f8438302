import { formatTimeUs, TIME_LIMIT_US } from "./timestamps.js";

/**
 * The one clock of the service. Every time it gives is max(wall, last + 1 µs), and `last` comes back from the log at start:
 * so times are strictly increasing across all records, through restarts and wall clocks that step back, until somebody resets it
 * (workers/recorder/stopped/reset-clock.ts). A wall clock at or beyond `TIME_LIMIT_US` is wrong for certain and counts for nothing: one glitch
 * would keep every later time there.
 */
export interface ServiceClock {
  /** The next time, in microseconds since the Unix epoch; above every one before. */
  tick(): number;
  readonly lastUs: number;
  /** A time of this clock that another thread gave (`createFollowingClock`): every further one is above it. */
  observe(timeUs: number): void;
}

/** A time of the service clock, and when it was: by `monotonicMs`, which all threads have in common. */
export interface ClockMoment {
  timeUs: number;
  atMs: number;
}

/** The service clock in a thread beside the one that owns it. */
export interface FollowingClock {
  /** What the owner's clock said last. Called before the first `tick`. */
  follow(moment: ClockMoment): void;
  /** The owner's time, and what has passed since it was told; above every one before, here and as told. */
  tick(): number;
}

export function createServiceClock(wallUs: () => number, lastUs = 0): ServiceClock {
  let last = lastUs;
  return {
    tick() {
      const wall = Math.floor(wallUs());
      last = wall > last && wall < TIME_LIMIT_US ? wall : last + 1;
      return last;
    },
    get lastUs() {
      return last;
    },
    observe(timeUs) {
      last = Math.max(last, timeUs);
    },
  };
}

const MINUTE_US = 60_000_000;
/** Largest first: the lead is told in the first unit of which it has two. */
const UNITS_US = [
  ["days", 24 * 60 * MINUTE_US],
  ["hours", 60 * MINUTE_US],
  ["minutes", MINUTE_US],
] as const;

/** What is wrong with the machine's clock, or was, for people; null while the service's clock is at most a minute ahead of it. */
export function clockFault(lastUs: number, wallUs: number): string | null {
  if (wallUs >= TIME_LIMIT_US) {
    const wall = new Date(wallUs / 1000).toISOString();
    return `the machine's clock is wrong, it says ${wall}: new times stay at ${formatTimeUs(lastUs)} until it is right`;
  }
  const aheadUs = lastUs - wallUs;
  if (aheadUs <= MINUTE_US) return null;
  const [unit, unitUs] = UNITS_US.find(([, us]) => aheadUs >= 2 * us) ?? UNITS_US[2];
  return (
    `the service's clock is ${Math.floor(aheadUs / unitUs)} ${unit} ahead of the machine's, at ${formatTimeUs(lastUs)}: new times stay ` +
    "there until the machine's clock has passed it; if the machine's is right, stop the service and run check --reset-clock"
  );
}

/** @param nowMs `monotonicMs` */
export function createFollowingClock(nowMs: () => number): FollowingClock {
  let told: ClockMoment | undefined;
  let last = 0;
  return {
    follow(moment) {
      told = moment;
      last = Math.max(last, moment.timeUs);
    },
    tick() {
      if (told === undefined) throw new Error("the service clock has not been told");
      last = Math.max(Math.floor(told.timeUs + (nowMs() - told.atMs) * 1000), last + 1);
      return last;
    },
  };
}

/** Where this thread's `performance.now` began, on the clock that all threads of the process have in common. */
const threadStartMs = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** Milliseconds that never step; the same in all threads of the process. */
export function monotonicMs(): number {
  return threadStartMs + performance.now();
}

/** The wall clock in microseconds, of the system's millisecond resolution: `tick` fills in between. */
export function wallClockUs(): number {
  return Date.now() * 1000;
}
