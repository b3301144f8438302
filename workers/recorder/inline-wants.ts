import { LIMITS } from "../../core/limits.js";
import { ServiceError } from "../../core/service-errors.js";
import type { Timers } from "../../storage/log-options.js";
import type { InlineAnswer, InlineWant, Tracked } from "./tracked-delivery.js";

/** After so long, one of the attempts that a receiver has under way has ended, and another may be waited for. */
const RETRY_AFTER_SECONDS = LIMITS.dispatchWindowMs / 1000;

/**
 * Tests and manual retries that somebody waits for: bounded for each receiver by itself, so that a slow one takes no room from others,
 * and none begun when its outcome would come too late for whoever waits.
 */
export class InlineWants {
  readonly #timers: Timers;
  readonly #counts = new Map<string, number>();
  #count = 0;
  readonly #onOverdue: (want: InlineWant) => void;

  /** @param onOverdue told of one that has waited as long as it may without being begun */
  constructor(timers: Timers, onOverdue: (want: InlineWant) => void) {
    this.#timers = timers;
    this.#onOverdue = onOverdue;
  }

  /** Those that wait for an answer. */
  get count(): number {
    return this.#count;
  }

  /** Undefined while one more of this receiver may be waited for, else the refusal. */
  refusal(webhookId: string): ServiceError | undefined {
    const waiting = this.#counts.get(webhookId) ?? 0;
    if (waiting < LIMITS.inlineOfReceiver) return undefined;
    return new ServiceError("unavailable", `${waiting} tests and retries of this receiver are waited for already`, {
      retry_after_seconds: RETRY_AFTER_SECONDS,
    });
  }

  add(tracked: Tracked, answer: InlineAnswer): InlineWant {
    const { webhookId } = tracked;
    this.#counts.set(webhookId, (this.#counts.get(webhookId) ?? 0) + 1);
    this.#count++;
    const want: InlineWant = { tracked, answer, timer: null, isAnswered: false };
    want.timer = this.#timers.set(() => this.#onOverdue(want), LIMITS.inlineWaitMs);
    tracked.inline.push(want);
    return want;
  }

  /** The one whose attempt begins now. */
  begin(tracked: Tracked): void {
    const want = tracked.inline.shift() as InlineWant;
    this.#clear(want);
    tracked.current = want;
  }

  /** Answers it; a second answer is none. */
  answer(want: InlineWant, outcome: Parameters<InlineAnswer>[0]): void {
    if (want.isAnswered) return;
    want.isAnswered = true;
    this.#count--;
    this.#clear(want);
    const { webhookId } = want.tracked;
    const left = (this.#counts.get(webhookId) ?? 0) - 1;
    if (left > 0) this.#counts.set(webhookId, left);
    else this.#counts.delete(webhookId);
    want.answer(outcome);
  }

  /** Answers all that were not begun. */
  refuseAll(tracked: Tracked, error: ServiceError): void {
    for (const want of tracked.inline.splice(0)) this.answer(want, { error });
  }

  #clear(want: InlineWant): void {
    if (want.timer !== null) this.#timers.clear(want.timer);
    want.timer = null;
  }
}
