import type { Delivery, DeliveryAttempt } from "../../core/delivery.js";
import { newDelivery } from "../../core/emit-run-event.js";
import type { EmittedEvent } from "../../core/emitted-event.js";
import { LIMITS } from "../../core/limits.js";
import { ServiceError } from "../../core/service-errors.js";
import type { DeliveryPut } from "../../core/webhook-change.js";
import { type EventSource, testEventPayload } from "../../core/webhook-event.js";
import type { DeliveryContent } from "../../storage/delivery-records.js";
import type { Timers } from "../../storage/log-options.js";
import { DeliveryQueue } from "../dispatcher/delivery-queue.js";
import type { DispatcherHandle } from "../dispatcher/dispatcher-handle.js";
import type { DeliveryJob, DeliveryReport } from "../dispatcher/dispatcher-messages.js";
import { DeliveryCounts, type DeliveryFigures } from "./delivery-figures.js";
import { type EventPayload, EventPayloads, eventPayload } from "./event-payloads.js";
import { webhookNotFound } from "./webhook-desk.js";
import type { KeptWebhook, WebhookState } from "./webhook-state.js";

/** Payloads of events that wait for their turn, in all; of further ones the front reads them again when it comes. */
const KEPT_PAYLOAD_BYTES = 64 * 1024 * 1024;
/** Tests and manual retries that wait for their attempt, in all: each is a request that somebody waits for. */
const MAXIMUM_INLINE = 256;
/** When an outcome cannot be recorded (more is waiting than the log may hold), it is tried again. */
const RECORD_AGAIN_MS = 1_000;

export interface DeliveryDeskOptions {
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
  /** Default: those of `LIMITS`. */
  backlog?: { waiting: number; waitingOfReceiver: number };
}

/** Who waits for an inline attempt; called when its outcome is committed. */
export type InlineAnswer = (outcome: { deliveryId: string } | { error: ServiceError }) => void;

interface Tracked {
  readonly id: string;
  readonly webhookId: string;
  /** Null while the front has not told. */
  delivery: Delivery | null;
  content: { history: DeliveryAttempt[]; payload: EventPayload; testPayload: string | null } | null;
  /**
   * `unseen`: the front's view does not have it yet. `queued`: waits for its turn. `loading`: the front was asked. `running`: the
   * dispatcher has it. `idle`: nothing is under way.
   */
  phase: "unseen" | "queued" | "loading" | "running" | "idle";
  /** It holds a place of the queue. */
  holdsPlace: boolean;
  /** Inline attempts that are wanted, in order. */
  inline: InlineAnswer[];
  /** Whose attempt is under way; null for an automatic one. */
  current: InlineAnswer | null;
  /** Of its latest record. */
  sequence: number;
  /** False: its outcome waits to be appended. */
  isRecorded: boolean;
}

/**
 * Brings deliveries to their receivers: from the record that they began with, through the front's view, the queue and the dispatcher, to
 * the record of their outcome. A delivery is known here until the view has its last record; so whoever asks about another one finds all
 * of it in the view.
 */
export class DeliveryDesk {
  readonly #options: DeliveryDeskOptions;
  readonly #tracked = new Map<string, Tracked>();
  readonly #queue = new DeliveryQueue<Tracked>();
  /** Automatic ones that the dispatcher has. */
  readonly #dispatched = new Set<Tracked>();
  /** In order of their records: what to do when the view has them. */
  readonly #unseen: { sequence: number; tracked: Tracked; isEnd: boolean }[] = [];
  readonly #uncommitted: { sequence: number; resume: (isCommitted: boolean) => void }[] = [];
  #viewed = 0;
  #committed = 0;
  readonly #payloads = new EventPayloads();
  readonly #counts = new DeliveryCounts();
  #inline = 0;
  #isServing = false;
  #isStopped = false;

  constructor(options: DeliveryDeskOptions) {
    this.#options = options;
  }

  get figures(): DeliveryFigures {
    const { waitingCount: waiting, runningCount: running } = this.#queue;
    return this.#counts.figures({ waiting, running, payloadBytes: this.#payloads.keptBytes });
  }

  /** The service listens there, and its view has all that the log held: what was pending goes out again, in a new window. */
  serving(port: number): void {
    if (this.#isServing) return;
    this.#isServing = true;
    this.#options.dispatcher.serving(port);
    for (const delivery of this.#options.state.pending()) {
      if (this.#tracked.has(delivery.id)) continue;
      this.#queue.add(delivery.webhookId, this.#track(delivery.id, delivery.webhookId, delivery, "queued", 0));
    }
    this.#pump();
  }

  /** A run's record with this event was appended. */
  emitted(event: EmittedEvent, runId: string, sequence: number): void {
    const payload = eventPayload(event.payload);
    const isKept = this.#payloads.keptBytes + payload.bytes.length <= KEPT_PAYLOAD_BYTES;
    for (const begun of event.deliveries) {
      const delivery = this.#options.state.pendingOne(begun.id) ?? newDelivery(begun, event, runId);
      const tracked = this.#track(delivery.id, delivery.webhookId, delivery, "unseen", sequence);
      if (isKept) this.#keep(tracked, [], payload, null);
      this.#unseen.push({ sequence, tracked, isEnd: false });
    }
  }

  /** One attempt with a synthetic event, whatever the webhook subscribes to, enabled or not. */
  test(webhookId: string, answer: InlineAnswer): void {
    const { state, tick, newId, source, append } = this.#options;
    const kept = state.get(webhookId);
    if (kept === undefined) {
      answer({ error: webhookNotFound(webhookId) });
      return;
    }
    if (!this.#admitsInline(answer)) return;
    const timeUs = tick();
    const eventId = newId(timeUs);
    const payload = testEventPayload(source(), eventId, kept.webhook, timeUs);
    const begun = { id: newId(timeUs), webhookId, onFailureMode: kept.webhook.onFailureMode };
    const delivery = newDelivery(begun, { id: eventId, name: "WebhookTest", timeUs }, null);
    const sequence = append({ kind: "delivery_put", delivery, history: [], payload }, timeUs);
    const tracked = this.#track(delivery.id, webhookId, delivery, "unseen", sequence);
    this.#keep(tracked, [], eventPayload(payload), payload);
    this.#want(tracked, answer);
    this.#unseen.push({ sequence, tracked, isEnd: false });
  }

  /** One attempt more, after whatever is under way; an answer at once for one that was delivered. */
  retry(deliveryId: string, answer: InlineAnswer): void {
    if (!this.#admitsInline(answer)) return;
    const tracked = this.#tracked.get(deliveryId) ?? this.#track(deliveryId, "", null, "idle", 0);
    this.#want(tracked, answer);
    if (tracked.phase === "idle") {
      this.#serveInline(tracked);
    } else if (tracked.phase === "queued" && this.#queue.remove(tracked.webhookId, tracked)) {
      tracked.phase = "idle";
      this.#serveInline(tracked);
    } else if (tracked.phase === "running" && tracked.current === null) {
      // Its automatic attempts end with the one under way.
      this.#options.dispatcher.release(deliveryId);
    }
  }

  /**
   * The webhook's address, its secret or whether it is enabled has changed, or it was deleted: after the attempts under way, its
   * deliveries go on with what it is now, in a new window.
   */
  webhookChanged(webhookId: string): void {
    for (const tracked of this.#dispatched) {
      if (tracked.webhookId === webhookId) this.#options.dispatcher.release(tracked.id);
    }
  }

  /** What the front found of a delivery; null when it cannot be read. */
  content(deliveryId: string, content: DeliveryContent | null): void {
    const tracked = this.#tracked.get(deliveryId);
    if (tracked?.phase !== "loading") return;
    tracked.phase = "idle";
    if (content === null) {
      this.#unreadable(tracked);
      return;
    }
    const { delivery, history, payload } = content;
    // What is known here is newer than what the view had.
    tracked.delivery ??= delivery;
    const testPayload = delivery.runId === null ? payload : null;
    this.#keep(tracked, history, eventPayload(payload), testPayload);
    if (tracked.holdsPlace) this.#proceed(tracked);
    else this.#serveInline(tracked);
    this.#flush();
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
    this.#viewed = Math.max(this.#viewed, sequence);
    let count = 0;
    for (; count < this.#unseen.length; count++) {
      const { sequence: of, tracked, isEnd } = this.#unseen[count]!;
      if (of > this.#viewed) break;
      if (isEnd) this.#forget(tracked);
      else if (tracked.phase === "unseen") this.#seen(tracked);
    }
    this.#unseen.splice(0, count);
    this.#pump();
  }

  /** Records up to this one are committed: who waits for them is answered. */
  committed(sequence: number): void {
    this.#committed = sequence;
    let count = 0;
    while (count < this.#uncommitted.length && this.#uncommitted[count]!.sequence <= sequence) count++;
    for (const { resume } of this.#uncommitted.splice(0, count)) resume(true);
  }

  /** Calls back when the record is committed, or will not be. */
  whenCommitted(sequence: number, resume: (isCommitted: boolean) => void): void {
    if (sequence <= this.#committed) resume(true);
    else this.#uncommitted.push({ sequence, resume });
  }

  /** Nothing is recorded any more: whoever waits is told. */
  abandon(): void {
    this.#isStopped = true;
    for (const { resume } of this.#uncommitted.splice(0)) resume(false);
    this.#refuseInline();
  }

  /** Lets attempts under way end within `graceMs`; their outcomes are appended when it resolves. What is pending stays so. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopped = true;
    await this.#options.dispatcher.stop(graceMs);
    this.#refuseInline();
  }

  #refuseInline(): void {
    for (const tracked of this.#tracked.values()) {
      const error = new ServiceError("unavailable", "the service is stopping", {});
      for (const answer of tracked.inline.splice(0)) this.#answer(answer, { error });
      if (tracked.current !== null) this.#answer(tracked.current, { error });
      tracked.current = null;
    }
  }

  #admitsInline(answer: InlineAnswer): boolean {
    if (!this.#isStopped && this.#inline < MAXIMUM_INLINE) return true;
    const why = this.#isStopped ? "the service is stopping" : "too many attempts are waited for";
    answer({ error: new ServiceError("unavailable", why, {}) });
    return false;
  }

  #want(tracked: Tracked, answer: InlineAnswer): void {
    this.#inline++;
    tracked.inline.push(answer);
  }

  #answer(answer: InlineAnswer, outcome: Parameters<InlineAnswer>[0]): void {
    this.#inline--;
    answer(outcome);
  }

  #track(
    deliveryId: string,
    webhookId: string,
    delivery: Delivery | null,
    phase: Tracked["phase"],
    sequence: number,
  ): Tracked {
    const tracked: Tracked = {
      id: deliveryId,
      webhookId,
      delivery,
      content: null,
      phase,
      holdsPlace: false,
      inline: [],
      current: null,
      sequence,
      isRecorded: true,
    };
    this.#tracked.set(deliveryId, tracked);
    return tracked;
  }

  #keep(tracked: Tracked, history: DeliveryAttempt[], payload: EventPayload, testPayload: string | null): void {
    tracked.content = { history, payload, testPayload };
    this.#payloads.hold(payload);
  }

  /** The view has the record that it began with. */
  #seen(tracked: Tracked): void {
    if (tracked.inline.length > 0) {
      tracked.phase = "idle";
      this.#serveInline(tracked);
      return;
    }
    const { waiting, waitingOfReceiver } = this.#options.backlog ?? LIMITS.deliveryBacklog;
    const ofReceiver = this.#queue.waitingOf(tracked.webhookId);
    if (this.#queue.waitingCount >= waiting && ofReceiver >= waitingOfReceiver) {
      if (tracked.content === null) this.#keep(tracked, [], eventPayload(""), null);
      this.#giveUp(tracked, `not attempted: ${ofReceiver} deliveries wait for the receiver already`);
      return;
    }
    tracked.phase = "queued";
    this.#queue.add(tracked.webhookId, tracked);
  }

  /** The view has its last record: unless something is under way again, nothing more needs to be known of it here. */
  #forget(tracked: Tracked): void {
    const isAtRest = tracked.phase === "idle" && tracked.inline.length === 0 && tracked.isRecorded;
    if (!isAtRest || tracked.sequence > this.#viewed) return;
    // It may have been forgotten before, and be asked about anew since.
    if (this.#tracked.get(tracked.id) !== tracked) return;
    this.#tracked.delete(tracked.id);
    if (tracked.content !== null) this.#payloads.release(tracked.content.payload);
  }

  /** Jobs that go to the dispatcher together: the bytes of one event are then sent across once. */
  #jobs: DeliveryJob[] = [];

  #pump(): void {
    if (!this.#isServing || this.#isStopped) return;
    for (let tracked = this.#queue.take(); tracked !== undefined; tracked = this.#queue.take()) {
      tracked.phase = "idle";
      tracked.holdsPlace = true;
      this.#proceed(tracked);
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
    if (tracked.inline.length > 0) {
      this.#leavePlace(tracked);
      this.#serveInline(tracked);
      return;
    }
    const { delivery, content } = tracked;
    if (delivery === null || content === null) {
      this.#load(tracked);
      return;
    }
    const kept = this.#options.state.get(delivery.webhookId);
    const isTest = delivery.eventName === "WebhookTest";
    if (kept === undefined) {
      this.#giveUp(tracked, "the webhook was deleted");
      return;
    }
    if (!kept.webhook.enabled && !isTest) {
      this.#giveUp(tracked, "the webhook was disabled");
      return;
    }
    const attempts = isTest ? 1 : 1 + kept.webhook.maxRetries;
    this.#dispatched.add(tracked);
    this.#dispatch(tracked, kept, Math.max(1, attempts - delivery.attempts));
  }

  /** The next inline attempt; nothing else is under way. */
  #serveInline(tracked: Tracked): void {
    if (this.#isStopped || tracked.inline.length === 0) return;
    const { delivery, content } = tracked;
    if (delivery === null || content === null) {
      this.#load(tracked);
      return;
    }
    if (delivery.status === "delivered") {
      for (const answer of tracked.inline.splice(0)) this.#answerRecorded(tracked, answer);
      this.#end(tracked);
      return;
    }
    const kept = this.#options.state.get(delivery.webhookId);
    if (kept === undefined) {
      const params = { field: "delivery_id", in: "path", value: tracked.id, webhook_id: delivery.webhookId };
      const error = new ServiceError("webhook_deleted", "the delivery's webhook was deleted", params);
      for (const answer of tracked.inline.splice(0)) this.#answer(answer, { error });
      // Nobody makes the attempts that were left any more.
      if (delivery.status === "pending") this.#giveUp(tracked, "the webhook was deleted");
      else this.#end(tracked);
      return;
    }
    tracked.current = tracked.inline.shift() as InlineAnswer;
    this.#dispatch(tracked, kept, 1);
    this.#flush();
  }

  #dispatch(tracked: Tracked, { webhook, secret }: KeptWebhook, attempts: number): void {
    const { delivery, content } = tracked as { delivery: Delivery; content: NonNullable<Tracked["content"]> };
    tracked.phase = "running";
    this.#jobs.push({
      deliveryId: tracked.id,
      eventId: delivery.eventId,
      eventName: delivery.eventName,
      url: webhook.url,
      secret,
      firstAttemptNumber: delivery.attempts + 1,
      attempts,
      timeoutMs: webhook.deliveryTimeoutSeconds * 1000,
      backoffMs: webhook.retryBackoffSeconds * 1000,
      payload: content.payload.bytes,
    });
  }

  #report({ attempt, next }: DeliveryReport, tracked: Tracked): void {
    const { delivery, content } = tracked as { delivery: Delivery; content: NonNullable<Tracked["content"]> };
    const timeUs = this.#options.tick();
    const after: Delivery = { ...delivery, nextRetryAtUs: next.kind === "retry" ? next.atUs : null };
    if (attempt !== null) {
      this.#counts.attempt(attempt);
      after.attempts = attempt.attemptNumber;
      after.lastStatusCode = attempt.statusCode;
      after.lastError = attempt.error;
      content.history = [...content.history.slice(1 - LIMITS.attemptsPerDelivery), attempt];
    }
    if (next.kind === "delivered") {
      after.status = "delivered";
      after.deliveredAtUs = timeUs;
      this.#counts.delivered(timeUs - delivery.createdAtUs);
    } else if (next.kind === "failed") {
      this.#counts.failed();
      after.status = "failed";
      after.firstFailedAtUs ??= timeUs;
    }
    if (attempt !== null || after.status !== delivery.status || after.nextRetryAtUs !== delivery.nextRetryAtUs) {
      after.updatedAtUs = timeUs;
      tracked.delivery = after;
      this.#record(tracked, timeUs);
    }
    if (next.kind === "retry") return;
    this.#dispatched.delete(tracked);
    // Released for a manual retry, or because its webhook has changed.
    if (next.kind === "released" && tracked.inline.length === 0 && tracked.holdsPlace) this.#proceed(tracked);
    else this.#ended(tracked);
  }

  /** The dispatcher has nothing of it any more. */
  #ended(tracked: Tracked): void {
    tracked.phase = "idle";
    this.#leavePlace(tracked);
    const { current } = tracked;
    tracked.current = null;
    if (current !== null) this.#answerRecorded(tracked, current);
    if (tracked.inline.length > 0) this.#serveInline(tracked);
    else this.#end(tracked);
  }

  /** It came to its end without a further attempt. */
  #giveUp(tracked: Tracked, lastError: string): void {
    const timeUs = this.#options.tick();
    const { delivery } = tracked as { delivery: Delivery };
    this.#counts.failed();
    tracked.delivery = {
      ...delivery,
      ...{ status: "failed", lastError, nextRetryAtUs: null, updatedAtUs: timeUs },
      firstFailedAtUs: delivery.firstFailedAtUs ?? timeUs,
    };
    this.#record(tracked, timeUs);
    this.#ended(tracked);
  }

  #unreadable(tracked: Tracked): void {
    const params = { field: "delivery_id", in: "path", value: tracked.id };
    if (tracked.delivery === null) {
      const error = new ServiceError("delivery_not_found", "no delivery has this id", params);
      for (const answer of tracked.inline.splice(0)) this.#answer(answer, { error });
      this.#tracked.delete(tracked.id);
      return;
    }
    this.#keep(tracked, [], eventPayload(""), null);
    const error = new ServiceError("internal_error", "what is stored of the delivery cannot be read", params);
    for (const answer of tracked.inline.splice(0)) this.#answer(answer, { error });
    this.#giveUp(tracked, "what is stored of the event cannot be read");
    this.#pump();
  }

  #leavePlace(tracked: Tracked): void {
    if (!tracked.holdsPlace) return;
    tracked.holdsPlace = false;
    this.#queue.ended(tracked.webhookId);
  }

  /** Forgotten when the view has its last record; one that was released stays pending, and goes out again at the next start. */
  #end(tracked: Tracked): void {
    if (tracked.sequence <= this.#viewed) this.#forget(tracked);
    else this.#unseen.push({ sequence: tracked.sequence, tracked, isEnd: true });
  }

  #answerRecorded(tracked: Tracked, answer: InlineAnswer): void {
    const { isRecorded } = tracked;
    this.whenCommitted(tracked.sequence, (isCommitted) => {
      const error = new ServiceError("unavailable", "the outcome could not be recorded", {});
      this.#answer(answer, isCommitted && isRecorded ? { deliveryId: tracked.id } : { error });
    });
  }

  /** Appends the delivery as it is. What is recorded is whole: one that could not be appended is made good by the next. */
  #record(tracked: Tracked, timeUs: number): void {
    const { delivery, content } = tracked as { delivery: Delivery; content: NonNullable<Tracked["content"]> };
    const { history, testPayload } = content;
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
    if (tracked.isRecorded && tracked.phase === "idle") this.#end(tracked);
  }
}
