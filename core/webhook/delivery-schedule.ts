/**
 * Decides when a delivery's attempts happen: 1 + max_retries of them, with a pause in between, all within one window. It has no timers: the caller passes the time, in milliseconds of one monotonic clock.
 *
 * | after | next |
 * |---|---|
 * | an attempt that succeeded | done, delivered |
 * | a failed last attempt, or a pause that would end at or after the window's end | done, failed |
 * | any other attempt | a pause, then an attempt with the whole time-out, or the rest of the window if that is shorter |
 */
export interface DeliveryPlan {
  /** Attempts of this window: 1 + max_retries, or fewer if some were made before. At least 1. */
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

  /** @param endMs the end of a window that began earlier; by default the window begins now */
  constructor(plan: DeliveryPlan, nowMs: number, endMs = nowMs + plan.windowMs) {
    this.#plan = plan;
    this.#endMs = endMs;
    this.#attemptsLeft = plan.attempts;
  }

  /** When the window ends. */
  get endMs(): number {
    return this.#endMs;
  }

  /** Begins an attempt: called at the start, and when a pause is over. If the pause ended too late, there is no attempt and the delivery fails. */
  begin(nowMs: number): Extract<DeliveryStep, { kind: "attempt" | "done" }> {
    const leftMs = this.#endMs - nowMs;
    if (this.#attemptsLeft === 0 || leftMs <= 0) return { kind: "done", status: "failed" };
    this.#attemptsLeft--;
    return { kind: "attempt", timeoutMs: Math.min(this.#plan.timeoutMs, leftMs) };
  }

  /** Reports that an attempt has ended. */
  ended(isDelivered: boolean, nowMs: number): Extract<DeliveryStep, { kind: "pause" | "done" }> {
    if (isDelivered) return { kind: "done", status: "delivered" };
    const untilMs = nowMs + this.#plan.backoffMs;
    if (this.#attemptsLeft === 0 || untilMs >= this.#endMs) return { kind: "done", status: "failed" };
    return { kind: "pause", untilMs };
  }
}
