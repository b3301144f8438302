import { formatTimeUs, TIME_LIMIT_US } from "./timestamps.js";

/**
 * The one clock of the service. Every time it gives is max(wall, last + 1 µs), and a start reads `last` from the log. So times strictly
 * increase over all records, also through restarts and when the wall clock steps back, until somebody resets it
 * (workers/recorder/stopped/reset-clock.ts). A wall clock at or beyond `TIME_LIMIT_US` is certainly wrong and is ignored: one such reading
 * would keep all later times there.
 */
export interface ServiceClock {
  /** The next time, in microseconds since the Unix epoch, above all earlier ones. */
  tick(): number;
  readonly lastUs: number;
  /** Tells this clock a time that another thread gave (`createFollowingClock`). All later times are above it. */
  observe(timeUs: number): void;
}

/** A time of the service clock, and the `monotonicMs` at which it was read. All threads share that clock. */
export interface ClockMoment {
  timeUs: number;
  atMs: number;
}

/** The service clock in a thread that does not own it. */
export interface FollowingClock {
  /** Sets the latest time of the owner's clock. Must be called before the first `tick`. */
  follow(moment: ClockMoment): void;
  /** The latest known time of the owner plus what has passed since, above every time given here or followed. */
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
/** Largest first. `clockFault` uses the first unit of which the lead has at least two. */
const UNITS_US = [
  ["days", 24 * 60 * MINUTE_US],
  ["hours", 60 * MINUTE_US],
  ["minutes", MINUTE_US],
] as const;

/** What is or was wrong with the machine's clock, for people. Null while the service's clock is at most a minute ahead of it. */
export function clockFault(lastUs: number, wallUs: number): string | null {
  if (wallUs >= TIME_LIMIT_US) {
    const wall = new Date(wallUs / 1000).toISOString();
    return `the machine's clock is wrong: it says ${wall}. Until it is set right, new times stay at ${formatTimeUs(lastUs)}`;
  }
  const aheadUs = lastUs - wallUs;
  if (aheadUs <= MINUTE_US) return null;
  const [unit, unitUs] = UNITS_US.find(([, us]) => aheadUs >= 2 * us) ?? UNITS_US[2];
  return (
    `the service's clock (${formatTimeUs(lastUs)}) is ${Math.floor(aheadUs / unitUs)} ${unit} ahead of the machine's. New times stay there ` +
    "until the machine's clock has passed it. If the machine's clock is right, stop the service and run check --reset-clock"
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

/** When this thread's `performance.now` was 0, by the clock that all threads of the process share. */
const threadStartMs = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** Milliseconds of a clock that never steps and is the same in all threads of the process. */
export function monotonicMs(): number {
  return threadStartMs + performance.now();
}

/** The wall clock in microseconds, with a resolution of a millisecond; `tick` fills in between. */
export function wallClockUs(): number {
  return Date.now() * 1000;
}
