import { LIMITS } from "../../../core/limits.js";
import type { Timers } from "../../../core/timers.js";
import type { Delivery, DeliveryFailure } from "../../../core/webhook/delivery.js";
import type { DeliveryPut } from "../../../core/webhook/webhook-change.js";
import type { DeliveryReport } from "../dispatcher-messages.js";
import { DeliveryCounts } from "./delivery-figures.js";
import type { Tracked } from "./tracked-delivery.js";
import type { WebhookState } from "./webhook-state.js";

/** Recording an outcome fails while too much is waiting for the log. It is tried again after this time. */
const RECORD_AGAIN_MS = 1_000;

export interface DeliveryOutcomesOptions {
  state: WebhookState;
  timers: Timers;
  tick(): number;
  /** Appends the record. @returns its sequence number. Throws if it cannot be appended now. */
  append(change: DeliveryPut, timeUs: number): number;
  /** An outcome that could not be recorded at first now is. */
  onRecordedLate(tracked: Tracked): void;
  report(what: string, error: unknown): void;
}

/** Counts the outcomes of deliveries, applies them and records them. Each delivery here was read completely. */
export class DeliveryOutcomes {
  readonly counts = new DeliveryCounts();
  readonly #options: DeliveryOutcomesOptions;
  #isStopped = false;

  constructor(options: DeliveryOutcomesOptions) {
    this.#options = options;
  }

  /** Stops trying again. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Takes a report of the dispatcher. */
  take({ attempt, next }: DeliveryReport, tracked: Tracked): void {
    const { delivery, history } = tracked as Tracked & { delivery: Delivery };
    const timeUs = this.#options.tick();
    const after: Delivery = { ...delivery, nextRetryAtUs: next.kind === "retry" ? next.atUs : null };
    if (attempt !== null) {
      this.counts.attempt(attempt);
      after.attempts = attempt.attemptNumber;
      after.lastStatusCode = attempt.statusCode;
      after.lastError = attempt.error;
      tracked.history = [...history.slice(1 - LIMITS.attemptsPerDelivery), attempt];
    }
    if (next.kind === "delivered") {
      after.status = "delivered";
      after.deliveredAtUs = timeUs;
      this.counts.delivered(timeUs - delivery.createdAtUs);
    } else if (next.kind === "failed") {
      this.counts.failed();
      after.status = "failed";
      after.firstFailure ??= this.#failureOf(after, timeUs);
    }
    if (attempt !== null || after.status !== delivery.status || after.nextRetryAtUs !== delivery.nextRetryAtUs) {
      after.updatedAtUs = timeUs;
      tracked.delivery = after;
      this.#record(tracked, timeUs);
    }
  }

  /** Fails a delivery without a further attempt. */
  giveUp(tracked: Tracked, lastError: string): void {
    const timeUs = this.#options.tick();
    const { delivery } = tracked as { delivery: Delivery };
    this.counts.failed();
    const after: Delivery = {
      ...delivery,
      ...{ status: "failed", lastError, nextRetryAtUs: null, updatedAtUs: timeUs },
    };
    after.firstFailure ??= this.#failureOf(after, timeUs);
    tracked.delivery = after;
    this.#record(tracked, timeUs);
  }

  #failureOf({ webhookId, lastStatusCode, lastError }: Delivery, atUs: number): DeliveryFailure {
    const webhookName = this.#options.state.get(webhookId)?.webhook.name ?? null;
    return { atUs, statusCode: lastStatusCode, error: lastError, webhookName };
  }

  /** Appends the whole delivery. So the next record makes up for one that could not be appended. */
  #record(tracked: Tracked, timeUs: number): void {
    const { delivery, history, testPayload } = tracked as Tracked & { delivery: Delivery };
    try {
      const change: DeliveryPut = { kind: "delivery_put", delivery, history, payload: testPayload };
      tracked.sequence = this.#options.append(change, timeUs);
      tracked.isRecorded = true;
    } catch (error) {
      tracked.isRecorded = false;
      this.#options.report("a delivery's outcome could not be recorded", error);
      this.#options.timers.set(() => this.#recordAgain(tracked), RECORD_AGAIN_MS);
    }
  }

  #recordAgain(tracked: Tracked): void {
    if (this.#isStopped || tracked.isRecorded) return;
    this.#record(tracked, this.#options.tick());
    if (tracked.isRecorded) this.#options.onRecordedLate(tracked);
  }
}
