/**
 * When a delivery's attempts happen: 1 + max_retries of them with a pause between, all within one window (interface.md, Emission rules
 * 5 and 6). Pure: whoever drives it says what time it is. Times are milliseconds of one monotonic clock.
 *
 * | after | next |
 * |---|---|
 * | an attempt that the receiver took | done, delivered |
 * | the last attempt, or a pause that would end at or behind the window's end | done, failed |
 * | any other attempt | a pause, then an attempt with the whole time-out or what the window leaves of it |
 */
export interface DeliveryPlan {
  /** Attempts of this window: 1 + max_retries, or fewer where some were made before. At least 1. */
  attempts: number;
  timeoutMs: number;
  backoffMs: number;
  windowMs: number;
}

export type DeliveryStep =
  | { kind: "attempt"; timeoutMs: number }
  | { kind: "pause"; untilMs: number }
  | { kind: "done"; status: "delivered" | "failed" };

export class DeliverySchedule {
  readonly #plan: DeliveryPlan;
  readonly #endMs: number;
  #attemptsLeft: number;

  /** @param endMs of a window that has begun before; by default it begins now */
  constructor(plan: DeliveryPlan, nowMs: number, endMs = nowMs + plan.windowMs) {
    this.#plan = plan;
    this.#endMs = endMs;
    this.#attemptsLeft = plan.attempts;
  }

  /** When the window ends. */
  get endMs(): number {
    return this.#endMs;
  }

  /** Begins an attempt: at the start, and when a pause is over. A pause that ended too late leaves no time for one. */
  begin(nowMs: number): Extract<DeliveryStep, { kind: "attempt" | "done" }> {
    const leftMs = this.#endMs - nowMs;
    if (this.#attemptsLeft === 0 || leftMs <= 0) return { kind: "done", status: "failed" };
    this.#attemptsLeft--;
    return { kind: "attempt", timeoutMs: Math.min(this.#plan.timeoutMs, leftMs) };
  }

  /** An attempt has ended. */
  ended(isDelivered: boolean, nowMs: number): Extract<DeliveryStep, { kind: "pause" | "done" }> {
    if (isDelivered) return { kind: "done", status: "delivered" };
    const untilMs = nowMs + this.#plan.backoffMs;
    if (this.#attemptsLeft === 0 || untilMs >= this.#endMs) return { kind: "done", status: "failed" };
    return { kind: "pause", untilMs };
  }
}
