import type { ServiceError } from "../../../core/service-errors.js";
import type { Delivery } from "../../../core/webhook/delivery.js";
import { BegunDelivery } from "../../../core/webhook/emit-run-event.js";
import type { EmittedEvent } from "../../../core/webhook/emitted-event.js";
import { CommitWaits } from "../commit-waits.js";
import { DeliveryQueue, IN_ALL } from "../delivery-queue.js";
import type { DeliveryReport } from "../dispatcher-messages.js";
import { webhookNotFound } from "../webhook-writes.js";
import { automaticAction, inlineAction, notReadError, testDelivery, webhookDeleted } from "./delivery-action.js";
import { DeliveryBacklog } from "./delivery-backlog.js";
import type { DeliveryFigures } from "./delivery-figures.js";
import { DeliveryOutcomes } from "./delivery-outcomes.js";
import { DispatchedDeliveries, mayFollow } from "./dispatched-deliveries.js";
import { eventPayload } from "./event-payloads.js";
import { InlineRequests, overdue } from "./inline-requests.js";
import type { DeliverySchedulerOptions } from "./scheduler-options.js";
import { TrackedDeliveries } from "./tracked-deliveries.js";
import type { FoundDelivery, InlineAnswer, InlineRequest, Tracked } from "./tracked-delivery.js";
import { UnreadableDeliveries } from "./unreadable-deliveries.js";

/**
 * Brings deliveries to their receivers. A delivery begins with a record. When the front's view has that record, it is queued, then sent by
 * the dispatcher, and its outcome is recorded. When the view has its last record, it is forgotten here.
 */
export class DeliveryScheduler {
  readonly #options: DeliverySchedulerOptions;
  readonly #tracked = new TrackedDeliveries();
  readonly #backlog: DeliveryBacklog;
  /** Inline attempts. They have a queue of their own, so that whoever waits for one does not wait for the automatic ones. */
  readonly #inlineQueue = new DeliveryQueue<Tracked>();
  readonly #requests: InlineRequests;
  readonly #unreadable: UnreadableDeliveries;
  readonly #dispatched: DispatchedDeliveries;
  readonly #outcomes: DeliveryOutcomes;
  /** Whoever waits for a record about webhooks to be committed. */
  readonly commits = new CommitWaits();
  #isServing = false;
  #isStopped = false;
  #stopping: Promise<void> | undefined;

  constructor(options: DeliverySchedulerOptions) {
    this.#options = options;
    const { state, timers, tick, append, report, onFaultChange: onChange } = options;
    this.#backlog = new DeliveryBacklog(options.backlog);
    this.#dispatched = new DispatchedDeliveries(options.dispatcher);
    const onRecordedLate = (tracked: Tracked): void => this.#recordedLate(tracked);
    this.#outcomes = new DeliveryOutcomes({ state, timers, tick, append, report, onRecordedLate });
    this.#requests = new InlineRequests(timers, this.commits, (request) => this.drop(request, overdue()));
    const again = (tracked: Tracked): void => this.#readAgain(tracked);
    this.#unreadable = new UnreadableDeliveries({ timers, tick, report, onChange, again });
  }

  /** Which deliveries wait because their stored data cannot be read, for people; null while there is none. */
  get fault(): string | null {
    return this.#unreadable.fault;
  }

  /** True while many receivers are served: more than a few that never answer would keep busy. */
  get isBusy(): boolean {
    return !this.#isStopped && this.#backlog.queue.runningCount >= IN_ALL / 2;
  }

  get figures(): DeliveryFigures {
    const waiting = this.#backlog.waitingCount + this.#inlineQueue.waitingCount;
    const running = this.#backlog.queue.runningCount + this.#inlineQueue.runningCount;
    return this.#outcomes.counts.figures({
      waiting,
      running,
      wanted: this.#requests.count,
      unreadable: this.#unreadable.count,
      payloadBytes: this.#tracked.payloadBytes,
    });
  }

  /** The service listens on this port, and its view has everything in the log: pending deliveries go out again, in a new window. */
  serving(port: number): void {
    if (this.#isServing) return;
    this.#isServing = true;
    this.#options.dispatcher.serving(port);
    for (const delivery of this.#options.state.keptPendings()) {
      if (this.#tracked.has(delivery.id)) continue;
      if (this.#backlog.hasRoomFor(delivery.webhookId)) this.#enqueue(delivery);
      else this.#backlog.park(delivery.webhookId, delivery.id);
    }
    this.#pump();
  }

  /** A run's record with this event was appended. */
  emitted(event: EmittedEvent, runId: string, sequence: number): void {
    const payload = eventPayload(event.payload);
    const isKept = this.#tracked.hasRoomFor(payload);
    const { id, name, timeUs } = event;
    const begun = event.deliveries.map((one) => {
      const kept = this.#options.state.keptPending(one.id) ?? new BegunDelivery(one, { id, name, timeUs, runId });
      const tracked = this.#tracked.track(one.id, one.webhookId, kept, "unseen", sequence);
      if (isKept) this.#tracked.keep(tracked, payload);
      return tracked;
    });
    this.#tracked.awaitBegin(sequence, begun);
  }

  /** Makes one attempt with a synthetic event, whatever the webhook subscribes to and even if it is disabled. */
  test(webhookId: string, answer: InlineAnswer): InlineRequest | undefined {
    const { state, tick, newId, source, append } = this.#options;
    const kept = state.get(webhookId);
    if (kept === undefined) {
      answer({ error: webhookNotFound(webhookId) });
      return undefined;
    }
    if (!this.#requests.admits(webhookId, answer)) return undefined;
    const timeUs = tick();
    const { delivery, payload } = testDelivery(kept.webhook, source(), timeUs, newId);
    const sequence = append({ kind: "delivery_put", delivery, history: [], payload }, timeUs);
    const tracked = this.#tracked.track(delivery.id, webhookId, delivery, "unseen", sequence);
    tracked.testPayload = payload;
    this.#tracked.keep(tracked, eventPayload(payload));
    this.#tracked.awaitBegin(sequence, [tracked]);
    // The client knows the webhook, not the delivery. If the webhook is deleted meanwhile, it is not found.
    return this.#requests.add(tracked, (outcome) => {
      const isDeleted = "error" in outcome && outcome.error.data.code === "webhook_deleted";
      answer(isDeleted ? { error: webhookNotFound(webhookId) } : outcome);
    });
  }

  /** Makes one more attempt, after whatever is under way. Answers at once if the delivery was delivered. */
  retry(deliveryId: string, webhookId: string, answer: InlineAnswer): InlineRequest | undefined {
    if (!this.#requests.admits(webhookId, answer)) return undefined;
    const pending = this.#options.state.keptPending(deliveryId) ?? null;
    const tracked = this.#tracked.get(deliveryId) ?? this.#tracked.track(deliveryId, webhookId, pending, "idle", 0);
    const request = this.#requests.add(tracked, answer);
    if (tracked.phase === "idle" || tracked.phase === "unreadable") {
      this.#rest(tracked);
    } else if (tracked.phase === "queued" && this.#backlog.queue.remove(tracked.webhookId, tracked)) {
      this.#unpark(tracked.webhookId);
      this.#rest(tracked);
    } else if (tracked.phase === "running" && tracked.current === null) {
      // The attempt under way is the last automatic one.
      this.#dispatched.release(tracked);
    }
    this.#pump();
    return request;
  }

  /** Nobody waits for the request any more. An attempt under way goes on and is recorded; one that has not begun is not made. */
  drop(request: InlineRequest, error: ServiceError): void {
    const { tracked } = request;
    if (!tracked.removeRequest(request)) return;
    this.#requests.answer(request, { error });
    const isLeft = tracked.phase === "wanted" && !tracked.isAwaited;
    if (!isLeft || !this.#inlineQueue.remove(tracked.webhookId, tracked)) return;
    // The automatic attempts waited for it, perhaps for longer than their window. They get a new one.
    tracked.window = null;
    this.#rest(tracked);
    this.#pump();
  }

  /**
   * The webhook's address, secret or `enabled` has changed, or it was deleted. Attempts under way end; then its deliveries go on with the
   * new settings, in what is left of their window.
   */
  webhookChanged(webhookId: string): void {
    this.#dispatched.releaseOf(webhookId);
  }

  /** Takes the front's answer to `askForContent`. */
  content(deliveryId: string, found: FoundDelivery): void {
    const tracked = this.#tracked.get(deliveryId);
    if (tracked?.phase !== "loading") return;
    tracked.phase = "idle";
    if (found.kind === "content") {
      const { delivery, history, payload } = found.content;
      this.#unreadable.remove(tracked);
      // A delivery that is known here is newer than the view's.
      tracked.delivery ??= delivery;
      tracked.testPayload = delivery.runId === null ? payload : null;
      tracked.history = history;
      this.#tracked.keep(tracked, eventPayload(payload));
      if (tracked.place === this.#inlineQueue) this.#serveInline(tracked);
      else this.#proceed(tracked);
    } else {
      this.#notRead(tracked, found.kind === "unknown" ? null : found.reason);
    }
    this.#pump();
  }

  reports(reports: readonly DeliveryReport[]): void {
    for (const report of reports) {
      const tracked = this.#tracked.get(report.deliveryId);
      if (tracked !== undefined) this.#report(report, tracked);
    }
    this.#pump();
  }

  /** The front's view has all records up to this one. */
  viewed(sequence: number): void {
    this.#tracked.viewed(sequence, (tracked) => this.#seen(tracked));
    this.#pump();
  }

  /** Nothing is recorded any more: makes no further attempt, and refuses whoever waits. */
  abandon(): void {
    this.commits.abandon();
    this.abandonAttempts();
    void this.#options.dispatcher.stop(0);
  }

  /** Makes no further attempt, and refuses whoever waits for one. What is on its way to the log is still committed and answered. */
  abandonAttempts(): void {
    this.#isStopped = true;
    this.#outcomes.stop();
    this.#requests.abandon(this.#tracked.all());
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
    this.#isStopped = true;
    this.#outcomes.stop();
    this.#requests.stop(this.#tracked.all());
    await this.#options.dispatcher.stop(graceMs);
    this.#requests.abandon(this.#tracked.all());
  }

  /** The view has the delivery's first record. */
  #seen(tracked: Tracked): void {
    if (tracked.isAwaited) {
      this.#rest(tracked);
      return;
    }
    if (!this.#backlog.hasRoomFor(tracked.webhookId)) {
      // Nothing is sent before the service serves, and `serving` finds all pending deliveries.
      if (this.#isServing) this.#backlog.park(tracked.webhookId, tracked.id);
      this.#tracked.drop(tracked);
      return;
    }
    tracked.phase = "queued";
    this.#backlog.queue.add(tracked.webhookId, tracked);
  }

  #enqueue(delivery: Delivery | BegunDelivery): void {
    const { id, webhookId } = delivery;
    this.#backlog.queue.add(webhookId, this.#tracked.track(id, webhookId, delivery, "queued", 0));
  }

  /** A queued delivery to the receiver has left the queue: parked ones move up. */
  #unpark(webhookId: string): void {
    for (let id = this.#backlog.unpark(webhookId); id !== undefined; id = this.#backlog.unpark(webhookId)) {
      const delivery = this.#options.state.keptPending(id);
      // A manual retry may have delivered it meanwhile, or be about to.
      if (delivery !== undefined && !this.#tracked.has(id)) this.#enqueue(delivery);
    }
  }

  #pump(): void {
    if (!this.#isServing || this.#isStopped) return;
    for (;;) {
      const inline = this.#inlineQueue.take();
      const tracked = inline ?? this.#backlog.queue.take() ?? this.#backlog.queue.takeAhead(mayFollow);
      if (tracked === undefined) break;
      if (inline === undefined && tracked.place !== null) {
        // It was dispatched behind another one, and there is room for both now.
        this.#dispatched.begin(tracked);
        continue;
      }
      tracked.phase = "idle";
      tracked.place = inline === undefined ? this.#backlog.queue : this.#inlineQueue;
      if (inline === undefined) {
        this.#unpark(tracked.webhookId);
        this.#proceed(tracked);
      } else {
        this.#serveInline(tracked);
      }
    }
    this.#dispatched.flush();
  }

  #load(tracked: Tracked): void {
    tracked.phase = "loading";
    this.#options.askForContent(tracked.id);
  }

  #readAgain(tracked: Tracked): void {
    this.#rest(tracked);
    this.#pump();
  }

  #recordedLate(tracked: Tracked): void {
    if (tracked.phase === "idle") this.#tracked.end(tracked);
  }

  /** Does what comes next for a delivery that was taken from its queue. */
  #proceed(tracked: Tracked): void {
    if (this.#isStopped) return;
    if (tracked.isAwaited) {
      this.#leavePlace(tracked);
      this.#rest(tracked);
      return;
    }
    const action = automaticAction(tracked, this.#options.state);
    if (action.kind === "load") this.#load(tracked);
    else if (action.kind === "attempt") this.#dispatched.dispatchAutomatic(tracked, action.kept, action.attempts);
    else this.#giveUp(tracked, action.lastError);
  }

  /** Does what comes next for a delivery whose inline attempt was taken from the queue. Nothing else of it is under way. */
  #serveInline(tracked: Tracked): void {
    if (this.#isStopped) return;
    if (!tracked.isAwaited) {
      this.#leavePlace(tracked);
      this.#rest(tracked);
      return;
    }
    const action = inlineAction(tracked, this.#options.state);
    if (action.kind === "load") {
      this.#load(tracked);
    } else if (action.kind === "attempt") {
      this.#requests.begin(tracked);
      this.#dispatched.dispatchInline(tracked, action.kept, action.attempts);
    } else if (action.kind === "delivered") {
      for (const request of tracked.takeRequests()) this.#requests.answerRecorded(request, tracked);
      this.#leavePlace(tracked);
      this.#tracked.end(tracked);
    } else {
      this.#requests.refuseAll(tracked, webhookDeleted(tracked));
      // Automatic attempts that were left are not made either.
      if (tracked.delivery?.status === "pending") this.#giveUp(tracked, action.lastError);
      else this.#ended(tracked);
    }
  }

  #report(report: DeliveryReport, tracked: Tracked): void {
    this.#outcomes.take(report, tracked);
    const { next } = report;
    if (next.kind === "retry" || next.kind === "attempt") return;
    this.#dispatched.ended(tracked);
    if (next.kind === "released") tracked.window = next.window;
    // It was released for a manual retry, or because its webhook has changed.
    if (next.kind === "released" && !tracked.isAwaited && tracked.place !== null) this.#proceed(tracked);
    else this.#ended(tracked);
  }

  /** Its attempts have ended: answers whoever waited for the last one. */
  #ended(tracked: Tracked): void {
    tracked.phase = "idle";
    this.#leavePlace(tracked);
    const { current } = tracked;
    tracked.current = null;
    if (current !== null) this.#requests.answerRecorded(current, tracked);
    this.#rest(tracked);
  }

  /** Nothing is under way: queues what is left to do, or ends the delivery. */
  #rest(tracked: Tracked): void {
    if (tracked.isAwaited) {
      tracked.phase = "wanted";
      this.#inlineQueue.add(tracked.webhookId, tracked);
    } else if (tracked.delivery?.status === "pending") {
      tracked.phase = "queued";
      this.#backlog.queue.add(tracked.webhookId, tracked);
    } else {
      tracked.phase = "idle";
      this.#tracked.end(tracked);
    }
  }

  /** Fails it without a further attempt. */
  #giveUp(tracked: Tracked, lastError: string): void {
    this.#outcomes.giveUp(tracked, lastError);
    this.#ended(tracked);
  }

  /** The front could not give its content. @param reason null: the view does not know it */
  #notRead(tracked: Tracked, reason: string | null): void {
    this.#leavePlace(tracked);
    this.#requests.refuseAll(tracked, notReadError(tracked, tracked.delivery === null && reason === null));
    if (tracked.delivery === null) {
      this.#tracked.drop(tracked);
    } else {
      // A new record would lack its history: it stays as it is stored.
      tracked.phase = "unreadable";
      this.#unreadable.add(tracked, reason ?? "the view does not have it");
    }
  }

  #leavePlace(tracked: Tracked): void {
    tracked.place?.ended(tracked.webhookId, tracked);
    tracked.place = null;
  }
}
