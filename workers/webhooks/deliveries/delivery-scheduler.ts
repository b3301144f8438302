import { type ServiceError, unknownId } from "../../../core/service-errors.js";
import type { EmittedEvent } from "../../../core/webhook/emitted-event.js";
import { RecordWaits } from "../../../storage/log/record-waits.js";
import type { DeliveryReport } from "../dispatcher/dispatcher-messages.js";
import { stopsDelivery, testDelivery } from "./delivery-action.js";
import type { DeliveryFigures } from "./delivery-figures.js";
import { DeliveryRunner, type QueuedDelivery } from "./delivery-runner.js";
import { payloadBytes } from "./event-payloads.js";
import { overdue } from "./inline-requests.js";
import type { DeliverySchedulerOptions } from "./scheduler-options.js";
import type { FoundDelivery, InlineAnswer, InlineRequest } from "./tracked-delivery.js";

/**
 * Brings deliveries to their receivers. A delivery begins with a record. When the front's view has that record, the delivery is queued. In
 * its turn it is read if necessary, attempted by the dispatcher, and recorded. Here is what others ask for; `DELIVERY_STATES` says what
 * follows what.
 */
export class DeliveryScheduler {
  readonly #options: DeliverySchedulerOptions;
  readonly #runner: DeliveryRunner;
  /** Whoever waits for a record about webhooks to be committed. */
  readonly commits = new RecordWaits();
  /** What waits for a record to be in the front's view. */
  readonly #views = new RecordWaits();
  #isServing = false;
  /** Called when no further attempt is made. */
  onHalt: () => void = () => {};
  #stopping: Promise<void> | undefined;

  constructor(options: DeliverySchedulerOptions) {
    this.#options = options;
    this.#runner = new DeliveryRunner(options, this.commits, (request) => this.drop(request, overdue()));
  }

  /**
   * Which deliveries wait because their stored data cannot be read, or because the machine lacked what a connection
   * needs, for people; null while there is none.
   */
  get fault(): string | null {
    return this.#runner.fault;
  }

  get figures(): DeliveryFigures {
    return this.#runner.figures;
  }

  /** The service listens on this port, and its view has everything in the log: pending deliveries go out again, in a new window. */
  serving(port: number): void {
    if (this.#isServing) return;
    this.#isServing = true;
    this.#options.dispatcher.serving(port);
    this.#queueWhenViewed([...this.#options.state.keptPendings()], this.#runner.lastSequence);
    this.#runner.begin();
  }

  /** A run's record with this event was appended. */
  emitted({ id, payload, deliveries }: EmittedEvent, sequence: number): void {
    this.#runner.lastSequence = sequence;
    this.#runner.payloads.keep(id, payload, deliveries.length);
    // Nothing is sent before the service serves, and `serving` finds all pending deliveries.
    if (this.#isServing) this.#queueWhenViewed(deliveries, sequence);
  }

  #queueWhenViewed(deliveries: readonly QueuedDelivery[], sequence: number): void {
    this.#views.add(sequence, () => this.#runner.queue(deliveries));
  }

  /** Makes one attempt with a synthetic event, whatever the webhook subscribes to and even if it is disabled. */
  test(webhookId: string, answer: InlineAnswer): InlineRequest | undefined {
    const { state, tick, newId, source, append } = this.#options;
    const { requests } = this.#runner;
    const kept = state.get(webhookId);
    if (kept === undefined) {
      answer({ error: unknownId("webhook", webhookId) });
      return undefined;
    }
    if (!requests.admits(webhookId, answer)) return undefined;
    const timeUs = tick();
    const { delivery, payload } = testDelivery(kept.webhook, source(), timeUs, newId);
    const bytes = payloadBytes(payload);
    const sequence = append({ kind: "delivery_put", delivery, history: [], payload }, timeUs);
    this.#runner.lastSequence = sequence;
    const tracked = this.#runner.track(delivery.id, webhookId, "unseen", delivery);
    Object.assign(tracked, { sequence, ownPayload: payload, payload: bytes });
    // The client knows the webhook, not the delivery. If the webhook is deleted meanwhile, it is not found.
    const request = requests.add(tracked, (outcome) => {
      const isDeleted = "error" in outcome && outcome.error.data.code === "webhook_deleted";
      answer(isDeleted ? { error: unknownId("webhook", webhookId) } : outcome);
    });
    this.#views.add(sequence, () => this.#runner.happens(tracked, { event: "seen" }));
    return request;
  }

  /** Makes one more attempt, after whatever is under way. Answers at once if the delivery was delivered. */
  retry(deliveryId: string, webhookId: string, answer: InlineAnswer): InlineRequest | undefined {
    const runner = this.#runner;
    if (!runner.requests.admits(webhookId, answer)) return undefined;
    const tracked = runner.get(deliveryId) ?? runner.takeOut(deliveryId, webhookId);
    const request = runner.requests.add(tracked, answer);
    runner.happens(tracked, { event: "requested" });
    runner.pump();
    return request;
  }

  /** Makes one attempt of a delivery for a resend, after whatever is under way, even if the receiver has taken the delivery. */
  resend(deliveryId: string, webhookId: string, answer: InlineAnswer): InlineRequest | undefined {
    const runner = this.#runner;
    if (runner.requests.isStopped) return undefined;
    const tracked = runner.get(deliveryId) ?? runner.takeOut(deliveryId, webhookId);
    const request = runner.requests.add(tracked, answer, true);
    runner.happens(tracked, { event: "requested" });
    runner.pump();
    return request;
  }

  /** Nobody waits for the request any more. An attempt under way goes on and is recorded; one that has not begun is not made. */
  drop(request: InlineRequest, error: ServiceError): void {
    const { tracked } = request;
    if (!tracked.requests.includes(request)) return;
    tracked.requests = tracked.requests.filter((other) => other !== request);
    this.#runner.requests.answer(request, { error });
    if (tracked.requests.length === 0) this.#runner.happens(tracked, { event: "dropped" });
    this.#runner.pump();
  }

  /**
   * The webhook's address, secret or `enabled` has changed, or it was deleted. Attempts under way end; what begins from now on goes by the
   * new settings.
   */
  webhookChanged(webhookId: string): void {
    const kept = this.#options.state.get(webhookId);
    for (const tracked of this.#runner.all()) {
      if (tracked.webhookId !== webhookId || !stopsDelivery(tracked, kept)) continue;
      this.#runner.happens(tracked, { event: "webhook_gone" });
    }
    this.#runner.pump();
  }

  /** Takes the front's answer to `askForContent`. */
  content(deliveryId: string, found: FoundDelivery): void {
    this.#runner.loaded(deliveryId, found);
    this.#runner.pump();
  }

  reports(reports: readonly DeliveryReport[]): void {
    for (const { deliveryId, attempt } of reports) {
      const isSent = !("lacking" in attempt);
      this.#runner.happens(
        this.#runner.get(deliveryId),
        isSent ? { event: "attempted", attempt } : { event: "not_sent", reason: attempt.lacking },
      );
    }
    this.#runner.pump();
  }

  /** All records up to this one are committed, and were sent to the front. */
  committed(sequence: number): void {
    this.commits.reached(sequence);
  }

  /** The front's view has all records up to this one. */
  viewed(sequence: number): void {
    this.#views.reached(sequence);
    this.#runner.pump();
  }

  /** Nothing is recorded any more: makes no further attempt, and refuses whoever waits. */
  abandon(): void {
    this.commits.abandon();
    this.abandonAttempts();
    void this.#options.dispatcher.stop(0);
  }

  /** Makes no further attempt, and refuses whoever waits for one. What is on its way to the log is still committed and answered. */
  abandonAttempts(): void {
    this.onHalt();
    this.#runner.halt();
    this.#runner.requests.abandon(this.#runner.all());
  }

  /**
   * Lets attempts under way end within `graceMs`. Their outcomes are appended when it resolves. Pending deliveries stay pending. Requests
   * whose attempts have not begun are refused at once, those whose attempts are cut short when that happens. Can be called again.
   */
  stop(graceMs: number): Promise<void> {
    this.#stopping ??= this.#stop(graceMs);
    return this.#stopping;
  }

  async #stop(graceMs: number): Promise<void> {
    const { requests } = this.#runner;
    this.onHalt();
    this.#runner.halt();
    requests.stop(this.#runner.all());
    await this.#options.dispatcher.stop(graceMs);
    requests.abandon(this.#runner.all());
  }
}
