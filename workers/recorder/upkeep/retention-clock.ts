const DAY_US = 86_400_000_000;
/** A cell may be switched off for some days. A clock that is further ahead than this may be set wrong. */
const MOST_LEAD_US = 7 * DAY_US;
/** Somebody has this long to correct a wrong clock. */
const TRIAL_US = DAY_US;

/**
 * Decides whether retention may trust the machine's clock. A clock that is set ahead by mistake makes captures look
 * old, and captures that retention removes are gone for good.
 *
 * A time is proven if a run ended then, or this process was running then, and a day has passed since. Retention trusts
 * a clock that is at most a week ahead of the last proven time. If a clock jumped further, retention waits a day and
 * then trusts it, whether it is right or not.
 */
export class RetentionClock {
  readonly #monotonicMs: () => number;
  readonly #startMs: number;
  /**
   * The smallest difference so far between the machine's clock and the monotonic one. With it, a jump ahead proves
   * nothing.
   */
  #leastOffsetUs = Number.POSITIVE_INFINITY;

  /** @param monotonicMs milliseconds that never step */
  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
    this.#startMs = monotonicMs();
  }

  /**
   * How far the machine's clock is ahead of the last proven time, in microseconds, if that is too far; else null. Each
   * call also observes the clock, so it must be called regularly.
   *
   * @param lastEndedUs gives the end of the last run that ended by then, in microseconds since the Unix epoch; null for
   *   none
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
