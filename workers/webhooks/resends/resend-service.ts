import { ServiceError, unknownId } from "../../../core/service-errors.js";
import type { Timers } from "../../../core/timers.js";
import type { Resend, ResendFigures, ResendItem } from "../../../core/webhook/resend.js";
import type { WebhookChange } from "../../../core/webhook/webhook-change.js";
import type { EventSource } from "../../../core/webhook/webhook-event.js";
import { decodeChanges } from "../../../storage/records/change-record.js";
import { RECORD_TYPE, RecordDecodeError } from "../../../storage/records/record-index.js";
import { ResendItems } from "../../../storage/records/resend-record.js";
import type { RecorderState } from "../../recorder/recorder-state.js";
import type { DeliveryScheduler } from "../deliveries/delivery-scheduler.js";
import type { FoundDelivery, FoundRun, InlineAnswer } from "../deliveries/tracked-delivery.js";
import { type MissedDelivery, missedContent } from "./missed-events.js";
import { Resender } from "./resender.js";

export interface ResendServiceOptions {
  state: RecorderState;
  deliveries: DeliveryScheduler;
  timers: Timers;
  tick(): number;
  newId(timeUs: number): string;
  source(): EventSource;
  append(change: WebhookChange, timeUs: number): number;
  /** Asks the front for the body of a run's record. `runContent` takes the answer. */
  askForRun(deliveryId: string, runId: string): void;
  report(what: string, error: unknown): void;
}

/** Resends as clients ask for them: their beginning, their figures, their end. */
export class ResendService {
  readonly #options: ResendServiceOptions;
  readonly #resender: Resender;
  /** Deliveries of missed events whose attempt is under way, until they have a record. */
  readonly #missed = new Map<string, MissedDelivery>();
  /** Sequence number of the newest record that ended a resend. */
  #endedAt = 0;

  constructor(options: ResendServiceOptions) {
    this.#options = options;
    const { timers, report, append, tick, deliveries, state } = options;
    this.#resender = new Resender({
      states: state.webhooks.resends,
      ...{ timers, report },
      attempt: (item, webhookId, answer) => this.#attempt(item, webhookId, answer),
      end: (resend) => {
        this.#endedAt = append({ kind: "resend_put", resend, items: new Uint8Array(0) }, tick());
        return this.#endedAt;
      },
    });
    deliveries.onHalt = () => this.#resender.stop();
  }

  /** Attempts may be made. */
  serving(): void {
    this.#resender.begin();
  }

  /** Appends the record of a new resend. `committed` lets it begin. @throws ServiceError webhook_not_found, resend_in_progress */
  create(webhookId: string, perSecond: number, items: Uint8Array): { id: string; sequence: number } {
    const { tick, newId, append } = this.#options;
    this.requireNone(webhookId);
    const timeUs = tick();
    const { count } = new ResendItems(items);
    const nothing = { attempted: 0, delivered: 0, failed: 0, state: "running" } as const;
    const resend: Resend = { id: newId(timeUs), webhookId, perSecond, deliveries: count, ...nothing };
    return { id: resend.id, sequence: append({ kind: "resend_put", resend, items }, timeUs) };
  }

  /** @throws ServiceError webhook_not_found, resend_in_progress */
  requireNone(webhookId: string): void {
    const { webhooks } = this.#options.state;
    if (webhooks.get(webhookId) === undefined) throw unknownId("webhook", webhookId);
    const running = webhooks.resends.runningOf(webhookId);
    if (running === undefined) return;
    const { id } = running.resend;
    throw new ServiceError("resend_in_progress", `resend ${id} of this webhook is running`, { resend_id: id });
  }

  committed(id: string): void {
    this.#resender.begun(id);
  }

  /** @throws ServiceError resend_not_found */
  figures(webhookId: string, resendId: string): ResendFigures {
    const figures = this.#options.state.webhooks.resends.figures(resendId, webhookId);
    if (figures === undefined) throw unknownId("resend", resendId);
    return figures;
  }

  /**
   * One that has ended stays as it is.
   *
   * @returns the sequence number of the record that must be committed before the client is answered
   * @throws ServiceError resend_not_found, unavailable
   */
  cancel(webhookId: string, resendId: string): number {
    this.figures(webhookId, resendId);
    const running = this.#options.state.webhooks.resends.get(resendId);
    if (running === undefined) return this.#endedAt;
    const sequence = this.#resender.cancel(running);
    if (sequence === undefined)
      throw new ServiceError("unavailable", "the end of the resend could not be recorded", {});
    return sequence;
  }

  webhookDeleted(webhookId: string): void {
    const running = this.#options.state.webhooks.resends.runningOf(webhookId);
    if (running !== undefined) this.#resender.cancel(running);
  }

  /** @returns takes the attempt back, unless it has begun */
  #attempt({ deliveryId, missed }: ResendItem, webhookId: string, answer: InlineAnswer): () => void {
    const { state, deliveries } = this.#options;
    const kept = state.webhooks.get(webhookId);
    if (missed !== null && kept !== undefined) {
      const { onFailureMode } = kept.webhook;
      this.#missed.set(deliveryId, { ...missed, deliveryId, webhookId, onFailureMode });
    }
    const request = deliveries.resend(deliveryId, webhookId, (outcome) => {
      this.#missed.delete(deliveryId);
      answer(outcome);
    });
    return () => {
      if (request !== undefined)
        deliveries.drop(request, new ServiceError("unavailable", "the resend was cancelled", {}));
    };
  }

  /** The content of this delivery is needed. True if it is one of a missed event: then its content is made. */
  wanted(deliveryId: string): boolean {
    const missed = this.#missed.get(deliveryId);
    if (missed === undefined) return false;
    const { state, timers, askForRun } = this.#options;
    if (state.activeRun(missed.runId) === undefined) askForRun(deliveryId, missed.runId);
    else timers.set(() => this.runContent(deliveryId, { kind: "none" }), 0);
    return true;
  }

  /** Takes the front's answer to `askForRun`. */
  runContent(deliveryId: string, found: FoundRun): void {
    const missed = this.#missed.get(deliveryId);
    // Without it, the attempt was taken back meanwhile. There is no such delivery then.
    const content: FoundDelivery = missed === undefined ? { kind: "unknown" } : this.#content(missed, found);
    this.#options.deliveries.content(deliveryId, content);
  }

  #content(missed: MissedDelivery, found: FoundRun): FoundDelivery {
    const { state, source, tick } = this.#options;
    if (found.kind === "unreadable") return found;
    try {
      const run = found.kind === "none" ? state.activeRun(missed.runId) : endedRun(found.body);
      if (run === undefined) return { kind: "unreadable", reason: `run ${missed.runId} is not found` };
      const programExists = state.program(run.programId) !== undefined;
      return { kind: "content", content: missedContent(missed, run, source(), programExists, tick()) };
    } catch (error) {
      if (!(error instanceof RecordDecodeError)) throw error;
      return { kind: "unreadable", reason: error.message };
    }
  }
}

function endedRun(body: Uint8Array) {
  const [change] = decodeChanges(RECORD_TYPE.runEnded, body);
  return change?.kind === "run_ended" ? change.run : undefined;
}
