const DAY_US = 86_400_000_000;
/** A cell stands still for a weekend; what is further ahead than this may be a clock that was set wrong. */
const MOST_LEAD_US = 7 * DAY_US;
/** So long somebody has to put a wrong clock right. */
const TRIAL_US = DAY_US;

/**
 * Whether removal by age may go by the machine's clock: one that is set ahead by mistake makes captures old, and they are removed for good. A
 * time counts as proven a day after it was there: a run ended then, or this process was running. Age goes by a clock that is at most a week
 * ahead of the last proven time. So a clock that jumped further is gone by a day later, whether it is right or not.
 */
export class RetentionClock {
  readonly #monotonicMs: () => number;
  readonly #startMs: number;
  /** Of the machine's clock over the monotonic one: the least so far, so that a jump ahead proves nothing. */
  #leastOffsetUs = Number.POSITIVE_INFINITY;

  /** @param monotonicMs milliseconds that never step */
  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
    this.#startMs = monotonicMs();
  }

  /**
   * How far the machine's clock is ahead of the last proven time, in microseconds, where that is too far; else null. Called again and again:
   * it learns how the clock goes.
   *
   * @param lastEndedUs gives the end of the last run that ended by then, in microseconds since the Unix epoch; null for none
   */
  doubtfulLeadUs(wallUs: number, lastEndedUs: (byUs: number) => number | null): number | null {
    const nowMs = this.#monotonicMs();
    this.#leastOffsetUs = Math.min(this.#leastOffsetUs, wallUs - nowMs * 1_000);
    const hasRunLong = (nowMs - this.#startMs) * 1_000 >= TRIAL_US;
    const runningUs = hasRunLong ? this.#leastOffsetUs + nowMs * 1_000 : Number.NEGATIVE_INFINITY;
    const leadUs = wallUs - Math.max(runningUs, lastEndedUs(wallUs - TRIAL_US) ?? Number.NEGATIVE_INFINITY);
    return leadUs > MOST_LEAD_US ? leadUs : null;
  }
}
