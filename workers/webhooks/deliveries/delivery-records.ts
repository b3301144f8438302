import { LIMITS } from "../../../core/limits.js";
import type { Timers } from "../../../core/timers.js";
import type { Delivery, DeliveryAttempt } from "../../../core/webhook/delivery.js";
import type { DeliveryPut } from "../../../core/webhook/webhook-change.js";
import { DeliveryCounts } from "./delivery-figures.js";
import type { TrackedDelivery } from "./tracked-delivery.js";
import type { WebhookState } from "./webhook-state.js";

/** Recording an outcome fails while too much is waiting for the log. It is tried again after this time. */
const RECORD_AGAIN_MS = 1_000;

export interface DeliveryRecordsOptions {
  state: WebhookState;
  timers: Timers;
  tick(): number;
  /** Appends the record. @returns its sequence number. Throws if it cannot be appended now. */
  append(change: DeliveryPut, timeUs: number): number;
  /** An outcome that could not be recorded at first now is. */
  onRecordedLate(tracked: TrackedDelivery): void;
  /** It is pending no more. */
  onEnd(delivery: Delivery): void;
  report(what: string, error: unknown): void;
}

/** What an attempt leaves of a delivery. */
export type AfterAttempt = { status: "delivered" | "failed" } | { status: "pending"; nextRetryAtUs: number | null };
type ReadDelivery = TrackedDelivery & { delivery: Delivery };

/** Counts what becomes of deliveries, and records it. Each delivery here was read completely. */
export class DeliveryRecords {
  readonly counts = new DeliveryCounts();
  readonly #options: DeliveryRecordsOptions;
  #isStopped = false;

  constructor(options: DeliveryRecordsOptions) {
    this.#options = options;
  }

  /** Stops trying again. */
  stop(): void {
    this.#isStopped = true;
  }

  attempted(tracked: TrackedDelivery, attempt: DeliveryAttempt, after: AfterAttempt): void {
    this.counts.attempt(attempt);
    tracked.history = [...tracked.history.slice(1 - LIMITS.attemptsPerDelivery), attempt];
    this.#change(tracked as ReadDelivery, {
      status: after.status,
      attempts: attempt.attemptNumber,
      lastStatusCode: attempt.statusCode,
      lastError: attempt.error,
      nextRetryAtUs: after.status === "pending" ? after.nextRetryAtUs : null,
    });
  }

  /** No time of a further attempt is known any more. */
  pauseEnded(tracked: TrackedDelivery): void {
    this.#change(tracked as ReadDelivery, { nextRetryAtUs: null });
  }

  /** Fails a delivery without a further attempt. */
  giveUp(tracked: TrackedDelivery, lastError: string | null): void {
    this.#change(tracked as ReadDelivery, { status: "failed", lastError, nextRetryAtUs: null });
  }

  #change(tracked: ReadDelivery, changed: Partial<Delivery>): void {
    const before = tracked.delivery;
    const timeUs = this.#options.tick();
    const after: Delivery = { ...before, ...changed, updatedAtUs: timeUs };
    if (changed.status === "delivered") {
      after.deliveredAtUs = timeUs;
      this.counts.delivered(timeUs - before.createdAtUs);
    } else if (changed.status === "failed") {
      this.counts.failed();
      const webhookName = this.#options.state.get(before.webhookId)?.webhook.name ?? null;
      const { lastStatusCode, lastError } = after;
      after.firstFailure ??= { atUs: timeUs, statusCode: lastStatusCode, error: lastError, webhookName };
    }
    tracked.delivery = after;
    this.#record(tracked, timeUs);
    if (before.status === "pending" && after.status !== "pending") this.#options.onEnd(after);
  }

  /** Appends the whole delivery. So the next record makes up for one that could not be appended. */
  #record(tracked: ReadDelivery, timeUs: number): void {
    const { delivery, history, ownPayload } = tracked;
    try {
      const change: DeliveryPut = { kind: "delivery_put", delivery, history, payload: ownPayload };
      tracked.sequence = this.#options.append(change, timeUs);
      tracked.isRecorded = true;
    } catch (error) {
      tracked.isRecorded = false;
      this.#options.report("a delivery's outcome could not be recorded", error);
      this.#options.timers.set(() => this.#recordAgain(tracked), RECORD_AGAIN_MS);
    }
  }

  #recordAgain(tracked: ReadDelivery): void {
    if (this.#isStopped || tracked.isRecorded) return;
    this.#record(tracked, this.#options.tick());
    if (tracked.isRecorded) this.#options.onRecordedLate(tracked);
  }
}
