import { LIMITS } from "../../../core/limits.js";
import { ServiceError } from "../../../core/service-errors.js";
import type { Timers } from "../../../core/timers.js";
import type { Delivery } from "../../../core/webhook/delivery.js";
import { BegunDelivery, newDelivery } from "../../../core/webhook/emit-run-event.js";
import type { EmittedEvent } from "../../../core/webhook/emitted-event.js";
import type { DeliveryPut } from "../../../core/webhook/webhook-change.js";
import { type EventSource, testEventPayload } from "../../../core/webhook/webhook-event.js";
import { CommitWaits } from "../commit-waits.js";
import { DeliveryQueue, IN_ALL } from "../delivery-queue.js";
import type { DispatcherHandle } from "../dispatcher-handle.js";
import type { BegunWindow, DeliveryJob, DeliveryReport } from "../dispatcher-messages.js";
import { automaticAction, inlineAction, jobOf, webhookDeleted } from "./delivery-action.js";
import { DeliveryBacklog } from "./delivery-backlog.js";
import type { DeliveryFigures } from "./delivery-figures.js";
import { DeliveryOutcomes } from "./delivery-outcomes.js";
import { type EventPayload, EventPayloads, eventPayload } from "./event-payloads.js";
import { InlineRequests, RETRY_AFTER_SECONDS } from "./inline-requests.js";
import { type FoundDelivery, type InlineAnswer, type InlineRequest, Tracked } from "./tracked-delivery.js";
import { UnreadableDeliveries } from "./unreadable-deliveries.js";
import { ViewProgress } from "./view-progress.js";
import type { KeptWebhook, WebhookState } from "./webhook-state.js";
import { webhookNotFound } from "./webhook-writes.js";

/** Payloads of events that wait for their turn, in all; of further ones the front reads them again when it comes. */
const KEPT_PAYLOAD_BYTES = 64 * 1024 * 1024;

export interface DeliverySchedulerOptions {
  state: WebhookState;
  dispatcher: DispatcherHandle;
  timers: Timers;
  tick(): number;
  newId(timeUs: number): string;
  source(): EventSource;
  /** Appends the record; gives its sequence number. Throws when it cannot be appended now. */
  append(change: DeliveryPut, timeUs: number): number;
  /** Asks the front for what is stored of a delivery: `content` answers. */
  askForContent(deliveryId: string): void;
  report(what: string, error: unknown): void;
  /** `fault` has changed. */
  onFaultChange(): void;
  /** Default: those of `LIMITS`. */
  backlog?: { waiting: number; waitingOfReceiver: number };
}

/**
 * Brings deliveries to their receivers: from the record that they began with, through the front's view, the queue and the dispatcher, to
 * the record of their outcome. A delivery is known here until the view has its last record; so whoever asks about another one finds all
 * of it in the view.
 */
export class DeliveryScheduler {
  readonly #options: DeliverySchedulerOptions;
  readonly #tracked = new Map<string, Tracked>();
  readonly #backlog: DeliveryBacklog;
  /** Of inline attempts: somebody waits for them, so that they are not behind the automatic ones. */
  readonly #inlineQueue = new DeliveryQueue<Tracked>();
  readonly #requests: InlineRequests;
  readonly #unreadable: UnreadableDeliveries;
  /** Automatic ones that the dispatcher has. */
  readonly #dispatched = new Set<Tracked>();
  readonly #view = new ViewProgress();
  readonly #outcomes: DeliveryOutcomes;
  readonly #commits = new CommitWaits();
  readonly #payloads = new EventPayloads();
  #isServing = false;
  #isStopped = false;
  #stopping: Promise<void> | undefined;

  constructor(options: DeliverySchedulerOptions) {
    this.#options = options;
    const { state, timers, tick, append, report, onFaultChange: onChange } = options;
    this.#backlog = new DeliveryBacklog(options.backlog);
    const onRecordedLate = (tracked: Tracked): void => {
      if (tracked.phase === "idle") this.#end(tracked);
    };
    this.#outcomes = new DeliveryOutcomes({ state, timers, tick, append, report, onRecordedLate });
    this.#requests = new InlineRequests(timers, this.#commits, (request) => {
      const waited = `the attempt could not begin within ${LIMITS.inlineWaitMs / 1000} s`;
      this.drop(request, new ServiceError("unavailable", waited, { retry_after_seconds: RETRY_AFTER_SECONDS }));
    });
    const again = (tracked: Tracked): void => {
      this.#rest(tracked);
      this.#pump();
    };
    this.#unreadable = new UnreadableDeliveries({ timers, tick, report, onChange, again });
  }

  /** Which deliveries wait because what is stored of them cannot be read, for people; null while there is none. */
  get fault(): string | null {
    return this.#unreadable.fault;
  }

  /** Many receivers are being served: more than a few that never answer keep open. */
  get isBusy(): boolean {
    return !this.#isStopped && this.#backlog.queue.runningCount >= IN_ALL / 2;
  }

  get figures(): DeliveryFigures {
    const waiting = this.#backlog.waitingCount + this.#inlineQueue.waitingCount;
    const running = this.#backlog.queue.runningCount + this.#inlineQueue.runningCount;
    const { keptBytes: payloadBytes } = this.#payloads;
    const { count: wanted } = this.#requests;
    return this.#outcomes.counts.figures({
      waiting,
      running,
      wanted,
      unreadable: this.#unreadable.count,
      payloadBytes,
    });
  }

  /** The service listens on this port, and its view has all that the log held: what was pending goes out again, in a new window. */
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
    const isKept = this.#payloads.keptBytes + payload.bytes.length <= KEPT_PAYLOAD_BYTES;
    const { id, name, timeUs } = event;
    const begun = event.deliveries.map((one) => {
      const kept = this.#options.state.keptPending(one.id) ?? new BegunDelivery(one, { id, name, timeUs, runId });
      const tracked = this.#track(one.id, one.webhookId, kept, "unseen", sequence);
      if (isKept) this.#keep(tracked, payload);
      return tracked;
    });
    this.#view.await(sequence, begun, false);
  }

  /** One attempt with a synthetic event, whatever the webhook subscribes to, enabled or not. */
  test(webhookId: string, answer: InlineAnswer): InlineRequest | undefined {
    const { state, tick, newId, source, append } = this.#options;
    const kept = state.get(webhookId);
    if (kept === undefined) {
      answer({ error: webhookNotFound(webhookId) });
      return undefined;
    }
    if (!this.#requests.admits(webhookId, answer)) return undefined;
    const timeUs = tick();
    const eventId = newId(timeUs);
    const payload = testEventPayload(source(), eventId, kept.webhook, timeUs);
    const begun = { id: newId(timeUs), webhookId, onFailureMode: kept.webhook.onFailureMode };
    const delivery = newDelivery(begun, { id: eventId, name: "WebhookTest", timeUs }, null);
    const sequence = append({ kind: "delivery_put", delivery, history: [], payload }, timeUs);
    const tracked = this.#track(delivery.id, webhookId, delivery, "unseen", sequence);
    tracked.testPayload = payload;
    this.#keep(tracked, eventPayload(payload));
    this.#view.await(sequence, [tracked], false);
    // Whoever tests knows a webhook, not the delivery: one that is deleted meanwhile is not there.
    return this.#requests.add(tracked, (outcome) => {
      const isDeleted = "error" in outcome && outcome.error.data.code === "webhook_deleted";
      answer(isDeleted ? { error: webhookNotFound(webhookId) } : outcome);
    });
  }

  /** One attempt more, after whatever is under way; an answer at once for one that was delivered. */
  retry(deliveryId: string, webhookId: string, answer: InlineAnswer): InlineRequest | undefined {
    if (!this.#requests.admits(webhookId, answer)) return undefined;
    const pending = this.#options.state.keptPending(deliveryId) ?? null;
    const tracked = this.#tracked.get(deliveryId) ?? this.#track(deliveryId, webhookId, pending, "idle", 0);
    const request = this.#requests.add(tracked, answer);
    if (tracked.phase === "idle" || tracked.phase === "unreadable") {
      this.#rest(tracked);
    } else if (tracked.phase === "queued" && this.#backlog.queue.remove(tracked.webhookId, tracked)) {
      this.#unpark(tracked.webhookId);
      this.#rest(tracked);
    } else if (tracked.phase === "running" && tracked.current === null) {
      // Its automatic attempts end with the one under way.
      this.#options.dispatcher.release(deliveryId);
    }
    this.#pump();
    return request;
  }

  /** Nobody waits for it any more: an attempt under way goes on and is recorded, one that was not begun is not made. */
  drop(request: InlineRequest, error: ServiceError): void {
    const { tracked } = request;
    if (!tracked.removeRequest(request)) return;
    this.#requests.answer(request, { error });
    const isLeft = tracked.phase === "wanted" && !tracked.isAwaited;
    if (!isLeft || !this.#inlineQueue.remove(tracked.webhookId, tracked)) return;
    // The automatic attempts gave way to it, perhaps for longer than their window: they are not lost with it.
    tracked.window = null;
    this.#rest(tracked);
    this.#pump();
  }

  /**
   * The webhook's address, its secret or whether it is enabled has changed, or it was deleted: after the attempts under way, its
   * deliveries go on with what it is now, in what is left of their window.
   */
  webhookChanged(webhookId: string): void {
    for (const tracked of this.#dispatched) {
      if (tracked.webhookId === webhookId) this.#options.dispatcher.release(tracked.id);
    }
  }

  /** What the front found of a delivery that it was asked for. */
  content(deliveryId: string, found: FoundDelivery): void {
    const tracked = this.#tracked.get(deliveryId);
    if (tracked?.phase !== "loading") return;
    tracked.phase = "idle";
    if (found.kind === "content") {
      const { delivery, history, payload } = found.content;
      this.#unreadable.remove(tracked);
      // What is known here is newer than what the view had.
      tracked.delivery ??= delivery;
      tracked.testPayload = delivery.runId === null ? payload : null;
      tracked.history = history;
      this.#keep(tracked, eventPayload(payload));
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
    this.#view.advance(sequence, (tracked, isEnd) => {
      if (isEnd) this.#forget(tracked);
      else if (tracked.phase === "unseen") this.#seen(tracked);
    });
    this.#pump();
  }

  /** Records up to this one are committed: who waits for them is answered. */
  committed(sequence: number): void {
    this.#commits.committed(sequence);
  }

  /** Calls back when the record is committed, or will not be. */
  whenCommitted(sequence: number, resume: (isCommitted: boolean) => void): void {
    this.#commits.add(sequence, resume);
  }

  /** Nothing is recorded any more: no further attempt is made, and whoever waits is told. */
  abandon(): void {
    this.#commits.abandon();
    this.abandonAttempts();
    void this.#options.dispatcher.stop(0);
  }

  /** No attempt is made any more: whoever waits for one is told. What is on its way to the log is committed and answered. */
  abandonAttempts(): void {
    this.#isStopped = true;
    this.#outcomes.stop();
    this.#requests.abandon(this.#tracked.values());
  }

  /**
   * Lets attempts under way end within `graceMs`; their outcomes are appended when it resolves. What is pending stays so. Whoever waits
   * for an attempt that was not begun is told at once, whoever waits for one that was cut short when it was. A second call is the first.
   */
  stop(graceMs: number): Promise<void> {
    this.#stopping ??= this.#stop(graceMs);
    return this.#stopping;
  }

  async #stop(graceMs: number): Promise<void> {
    this.#isStopped = true;
    this.#outcomes.stop();
    this.#requests.stop(this.#tracked.values());
    await this.#options.dispatcher.stop(graceMs);
    this.#requests.abandon(this.#tracked.values());
  }

  #track(
    deliveryId: string,
    webhookId: string,
    delivery: Delivery | BegunDelivery | null,
    phase: Tracked["phase"],
    sequence: number,
  ): Tracked {
    const tracked = new Tracked(deliveryId, webhookId, delivery, phase, sequence);
    this.#tracked.set(deliveryId, tracked);
    return tracked;
  }

  #keep(tracked: Tracked, payload: EventPayload): void {
    tracked.payload = payload;
    this.#payloads.hold(payload);
  }

  /** The view has the record that it began with. */
  #seen(tracked: Tracked): void {
    if (tracked.isAwaited) {
      this.#rest(tracked);
      return;
    }
    if (!this.#backlog.hasRoomFor(tracked.webhookId)) {
      // Before the service serves there are no turns, and `serving` finds all that is pending.
      if (this.#isServing) this.#backlog.park(tracked.webhookId, tracked.id);
      this.#letGo(tracked);
      return;
    }
    tracked.phase = "queued";
    this.#backlog.queue.add(tracked.webhookId, tracked);
  }

  #enqueue(delivery: Delivery | BegunDelivery): void {
    this.#backlog.queue.add(delivery.webhookId, this.#track(delivery.id, delivery.webhookId, delivery, "queued", 0));
  }

  /** One that waited for the receiver does no more: what is parked moves up. */
  #unpark(webhookId: string): void {
    for (let id = this.#backlog.unpark(webhookId); id !== undefined; id = this.#backlog.unpark(webhookId)) {
      const delivery = this.#options.state.keptPending(id);
      // A manual retry has made it meanwhile, or is about to.
      if (delivery !== undefined && !this.#tracked.has(id)) this.#enqueue(delivery);
    }
  }

  /** The view has its last record: unless something is under way again, nothing more needs to be known of it here. */
  #forget(tracked: Tracked): void {
    const isAtRest = tracked.phase === "idle" && !tracked.isAwaited && tracked.isRecorded;
    if (!isAtRest || !this.#view.has(tracked.sequence)) return;
    // It may have been forgotten before, and be asked about anew since.
    if (this.#tracked.get(tracked.id) === tracked) this.#letGo(tracked);
  }

  #letGo(tracked: Tracked): void {
    this.#tracked.delete(tracked.id);
    if (tracked.payload !== null) this.#payloads.release(tracked.payload);
  }

  /** Jobs that go to the dispatcher together: the bytes of one event are then sent across once. */
  #jobs: DeliveryJob[] = [];

  #pump(): void {
    if (!this.#isServing || this.#isStopped) return;
    for (;;) {
      const inline = this.#inlineQueue.take();
      const tracked = inline ?? this.#backlog.queue.take() ?? this.#backlog.queue.takeAhead(mayFollow);
      if (tracked === undefined) break;
      if (inline === undefined && tracked.place !== null) {
        // It went ahead, and there is room for it now.
        this.#flush();
        this.#options.dispatcher.begin(tracked.id);
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
    this.#flush();
  }

  #flush(): void {
    if (this.#jobs.length === 0) return;
    this.#options.dispatcher.deliver(this.#jobs);
    this.#jobs = [];
  }

  #load(tracked: Tracked): void {
    tracked.phase = "loading";
    this.#options.askForContent(tracked.id);
  }

  /** Its turn has come. */
  #proceed(tracked: Tracked): void {
    if (this.#isStopped) return;
    if (tracked.isAwaited) {
      this.#leavePlace(tracked);
      this.#rest(tracked);
      return;
    }
    const turn = automaticAction(tracked, this.#options.state);
    if (turn.kind === "load") {
      this.#load(tracked);
    } else if (turn.kind === "attempt") {
      this.#dispatched.add(tracked);
      this.#dispatch(tracked, turn.kept, turn.attempts, tracked.window);
    } else if (turn.kind === "give_up") {
      this.#giveUp(tracked, turn.lastError);
    }
  }

  /** The turn of its next inline attempt has come; nothing else is under way. */
  #serveInline(tracked: Tracked): void {
    if (this.#isStopped) return;
    if (!tracked.isAwaited) {
      this.#leavePlace(tracked);
      this.#rest(tracked);
      return;
    }
    const turn = inlineAction(tracked, this.#options.state);
    switch (turn.kind) {
      case "load":
        this.#load(tracked);
        return;
      case "delivered":
        for (const request of tracked.takeRequests()) this.#requests.answerRecorded(request, tracked);
        this.#leavePlace(tracked);
        this.#end(tracked);
        return;
      case "give_up":
        this.#requests.refuseAll(tracked, webhookDeleted(tracked));
        // Nobody makes the attempts that were left any more.
        if (tracked.delivery?.status === "pending") this.#giveUp(tracked, turn.lastError);
        else this.#ended(tracked);
        return;
      case "attempt":
        this.#requests.begin(tracked);
        this.#dispatch(tracked, turn.kept, turn.attempts, null);
        return;
    }
  }

  #dispatch(tracked: Tracked, kept: KeptWebhook, attempts: number, window: BegunWindow | null): void {
    tracked.phase = "running";
    const afterId = tracked.place?.before(tracked.webhookId, tracked)?.id ?? null;
    this.#jobs.push(jobOf(tracked, kept, attempts, window, afterId));
  }

  #report(report: DeliveryReport, tracked: Tracked): void {
    this.#outcomes.take(report, tracked);
    const { next } = report;
    if (next.kind === "retry" || next.kind === "attempt") return;
    this.#dispatched.delete(tracked);
    if (next.kind === "released") tracked.window = next.window;
    // Released for a manual retry, or because its webhook has changed.
    if (next.kind === "released" && !tracked.isAwaited && tracked.place !== null) this.#proceed(tracked);
    else this.#ended(tracked);
  }

  /** The dispatcher has nothing of it any more. */
  #ended(tracked: Tracked): void {
    tracked.phase = "idle";
    this.#leavePlace(tracked);
    const { current } = tracked;
    tracked.current = null;
    if (current !== null) this.#requests.answerRecorded(current, tracked);
    this.#rest(tracked);
  }

  /** Nothing is under way: what is still to be done waits for its turn, or there is nothing more. */
  #rest(tracked: Tracked): void {
    if (tracked.isAwaited) {
      tracked.phase = "wanted";
      this.#inlineQueue.add(tracked.webhookId, tracked);
    } else if (tracked.delivery?.status === "pending") {
      tracked.phase = "queued";
      this.#backlog.queue.add(tracked.webhookId, tracked);
    } else {
      tracked.phase = "idle";
      this.#end(tracked);
    }
  }

  /** It came to its end without a further attempt. */
  #giveUp(tracked: Tracked, lastError: string): void {
    this.#outcomes.giveUp(tracked, lastError);
    this.#ended(tracked);
  }

  /** @param reason null: the view has nothing of it */
  #notRead(tracked: Tracked, reason: string | null): void {
    const params = { field: "delivery_id", in: "path", value: tracked.id };
    this.#leavePlace(tracked);
    this.#requests.refuseAll(
      tracked,
      tracked.delivery === null && reason === null
        ? new ServiceError("delivery_not_found", "no delivery has this id", params)
        : new ServiceError("internal_error", "what is stored of the delivery cannot be read", params),
    );
    if (tracked.delivery === null) {
      this.#tracked.delete(tracked.id);
    } else {
      // Written anew it would be without its history: it stays as it is stored.
      tracked.phase = "unreadable";
      this.#unreadable.add(tracked, reason ?? "the view does not have it");
    }
  }

  #leavePlace(tracked: Tracked): void {
    tracked.place?.ended(tracked.webhookId, tracked);
    tracked.place = null;
  }

  /** Forgotten when the view has its last record; one that was released stays pending, and goes out again at the next start. */
  #end(tracked: Tracked): void {
    if (this.#view.has(tracked.sequence)) this.#forget(tracked);
    else this.#view.await(tracked.sequence, [tracked], true);
  }
}

/** Nothing of it is to be looked up first, and no window of it runs while it waits. */
function mayFollow(running: Tracked, next: Tracked): boolean {
  return running.phase === "running" && next.payload !== null && next.window === null;
}
