import { ServiceError } from "../../../core/service-errors.js";
import type { Delivery, DeliveryAttempt } from "../../../core/webhook/delivery.js";
import { shortageOf } from "../../../storage/disk/file-system-error.js";
import type { RecordWaits } from "../../../storage/log/record-waits.js";
import type { DeliveryJob } from "../dispatcher/dispatcher-messages.js";
import { jobOf, nextAction, notReadError, stopsDelivery, webhookDeleted } from "./delivery-action.js";
import type { DeliveryFigures } from "./delivery-figures.js";
import { DeliveryQueue } from "./delivery-queue.js";
import { DeliveryRecords } from "./delivery-records.js";
import { type DeliveryEvent, type DeliveryState, stepAfter } from "./delivery-states.js";
import { EventPayloads, payloadBytes } from "./event-payloads.js";
import { InlineRequests } from "./inline-requests.js";
import { PostponedDeliveries } from "./postponed-deliveries.js";
import { pauseEndMs } from "./retry-pause.js";
import type { DeliverySchedulerOptions } from "./scheduler-options.js";
import { type FoundDelivery, type InlineRequest, TrackedDelivery } from "./tracked-delivery.js";

/** Something that happens to a delivery. */
export type DeliveryHappening =
  | { event: "attempted"; attempt: DeliveryAttempt }
  | { event: "not_read"; reason: string | null }
  | { event: "not_sent"; reason: string }
  | { event: Exclude<DeliveryEvent, "attempted" | "not_read" | "not_sent"> };

/** One that waits for its turn. */
export type QueuedDelivery = Pick<Delivery, "id" | "webhookId">;

/**
 * Most deliveries that are taken in one go. Those of a deleted webhook all end without an attempt, and producers must
 * not wait for that.
 */
const MOST_TAKEN_AT_ONCE = 1_000;

/** Takes deliveries through the states of `DELIVERY_STATES`. */
export class DeliveryRunner {
  readonly #options: DeliverySchedulerOptions;
  readonly #commits: RecordWaits;
  readonly #tracked = new Map<string, TrackedDelivery>();
  /** Pending deliveries, for automatic attempts. */
  readonly #queue: DeliveryQueue<QueuedDelivery>;
  /** Inline attempts have places of their own, so that whoever waits for one does not wait for the automatic ones. */
  readonly #inlineQueue: DeliveryQueue<TrackedDelivery>;
  readonly payloads = new EventPayloads();
  readonly requests: InlineRequests;
  readonly #unreadable: PostponedDeliveries;
  readonly #unsent: PostponedDeliveries;
  readonly #records: DeliveryRecords;
  /** Sequence number of the latest record about deliveries. */
  lastSequence = 0;
  /** Jobs are sent together, so that the bytes of one event cross to the dispatcher's thread once. */
  #jobs: DeliveryJob[] = [];
  #state: "not_begun" | "running" | "halted" = "not_begun";
  #isPumpDue = false;

  /** @param onOverdue called for a request that has waited as long as it may */
  constructor(options: DeliverySchedulerOptions, commits: RecordWaits, onOverdue: (request: InlineRequest) => void) {
    this.#options = options;
    this.#commits = commits;
    const { state, timers, tick, append, report, onFaultChange } = options;
    this.#queue = new DeliveryQueue(options.mostUnderWay);
    this.#inlineQueue = new DeliveryQueue(options.mostUnderWay);
    this.#records = new DeliveryRecords({
      ...{ state, timers, tick, report },
      append: (change, timeUs) => {
        this.lastSequence = append(change, timeUs);
        return this.lastSequence;
      },
      onRecordedLate: (tracked) => this.#happensLater(tracked, { event: "recorded" }),
      onEnd: ({ eventId }) => this.payloads.ended(eventId),
    });
    this.requests = new InlineRequests(timers, commits, onOverdue);
    const again = (id: string): void => this.#happensLater(this.#tracked.get(id), { event: "again" });
    const postponed = { timers, tick, report, onChange: onFaultChange, again };
    this.#unreadable = new PostponedDeliveries("stored data cannot be read", postponed);
    this.#unsent = new PostponedDeliveries("they cannot be sent", postponed);
  }

  /** Which deliveries are postponed, and why, for people; null while there is none. */
  get fault(): string | null {
    const faults = [this.#unreadable.fault, this.#unsent.fault].filter((fault) => fault !== null);
    return faults.length === 0 ? null : faults.join("; ");
  }

  get figures(): DeliveryFigures {
    return this.#records.counts.figures({
      waiting: this.#queue.waitingCount + this.#inlineQueue.waitingCount,
      running: this.#queue.runningCount + this.#inlineQueue.runningCount,
      requested: this.requests.count,
      postponed: this.#unreadable.count + this.#unsent.count,
      payloadBytes: this.payloads.keptBytes,
    });
  }

  get(deliveryId: string): TrackedDelivery | undefined {
    return this.#tracked.get(deliveryId);
  }

  all(): Iterable<TrackedDelivery> {
    return this.#tracked.values();
  }

  /** From now on attempts are made. */
  begin(): void {
    if (this.#state === "not_begun") this.#state = "running";
    this.pump();
  }

  /** No further attempt is made. */
  halt(): void {
    this.#state = "halted";
    this.#records.stop();
    this.#unreadable.stop();
    this.#unsent.stop();
    for (const tracked of this.#tracked.values()) this.#clearPause(tracked);
  }

  /** Queues pending deliveries, oldest first, unless something is done about them already. */
  queue(deliveries: readonly QueuedDelivery[]): void {
    for (const one of deliveries) if (!this.#tracked.has(one.id)) this.#queue.add(one.webhookId, one);
  }

  /** Takes a delivery out of the queue, if it is there, for an inline attempt. */
  takeOut(id: string, webhookId: string): TrackedDelivery {
    this.#queue.remove(webhookId, (one) => one.id === id);
    return this.#trackQueued({ id, webhookId });
  }

  track(id: string, webhookId: string, state: DeliveryState, delivery: Delivery | null): TrackedDelivery {
    const tracked = new TrackedDelivery(id, webhookId, state, delivery);
    tracked.payload = this.#keptPayload(delivery);
    this.#tracked.set(id, tracked);
    return tracked;
  }

  /** Null if the delivery must be read. Without an attempt it has no history: then all of it may be known here. */
  #keptPayload(delivery: Delivery | null): Uint8Array | null {
    return delivery?.attempts === 0 ? this.payloads.get(delivery.eventId) : null;
  }

  /** Begins what may begin. */
  pump(): void {
    if (this.#state !== "running") return;
    let taken = 0;
    for (let next = this.#takeNext(); next !== undefined; next = this.#takeNext()) {
      this.happens(next, { event: "taken" });
      if (++taken === MOST_TAKEN_AT_ONCE) {
        this.#pumpLater();
        break;
      }
    }
    if (this.#jobs.length > 0) this.#options.dispatcher.deliver(this.#jobs);
    this.#jobs = [];
  }

  #pumpLater(): void {
    if (this.#isPumpDue) return;
    this.#isPumpDue = true;
    this.#options.timers.set(() => {
      this.#isPumpDue = false;
      this.pump();
    }, 0);
  }

  #takeNext(): TrackedDelivery | undefined {
    const inline = this.#inlineQueue.take();
    if (inline !== undefined) return Object.assign(inline, { place: "inline" });
    const queued = this.#queue.take();
    return queued && Object.assign(this.#trackQueued(queued), { place: "automatic" });
  }

  #trackQueued({ id, webhookId }: QueuedDelivery): TrackedDelivery {
    return this.track(id, webhookId, "queued", this.#options.state.pendingDelivery(id) ?? null);
  }

  /** Takes what the front found of a delivery. */
  loaded(deliveryId: string, found: FoundDelivery): void {
    const tracked = this.#tracked.get(deliveryId);
    if (tracked?.state !== "loading") return;
    if (found.kind !== "content") {
      this.happens(tracked, { event: "not_read", reason: found.kind === "unknown" ? null : found.reason });
      return;
    }
    const { delivery, history, payload, isOwnPayload } = found.content;
    let bytes: Uint8Array;
    try {
      bytes = payloadBytes(payload);
    } catch (error) {
      const reason = shortageOf(error);
      if (reason === null) throw error;
      const why = `the delivery's stored data cannot be read: ${reason}`;
      this.requests.refuseAll(tracked, new ServiceError("unavailable", why, {}));
      this.happens(tracked, { event: "not_read", reason });
      return;
    }
    this.#unreadable.remove(deliveryId);
    const ownPayload = isOwnPayload ? payload : null;
    Object.assign(tracked, { delivery, history, ownPayload, payload: bytes });
    this.happens(tracked, { event: "loaded" });
  }

  /** By a timer, and not by a call that begins what may begin by itself. */
  #happensLater(tracked: TrackedDelivery | undefined, what: DeliveryHappening): void {
    this.happens(tracked, what);
    this.pump();
  }

  /** Takes the step that follows in the delivery's state; none if nothing is to be done. */
  happens(tracked: TrackedDelivery | undefined, what: DeliveryHappening): void {
    const step = tracked && stepAfter(tracked.state, what.event);
    if (tracked === undefined || step === undefined) return;
    if (tracked.state === "pausing") {
      this.#clearPause(tracked);
      this.#records.pauseEnded(tracked);
    } else if (what.event === "dropped") {
      this.#inlineQueue.remove(tracked.webhookId, (other) => other === tracked);
    }
    if (step === "rest") this.#rest(tracked);
    else if (step === "proceed") this.#proceed(tracked);
    else if (what.event === "attempted") this.#conclude(tracked, what.attempt);
    else if (what.event === "not_read") this.#postpone(tracked, what.reason);
    else if (what.event === "not_sent") this.#postponeUnsent(tracked, what.reason);
  }

  #rest(tracked: TrackedDelivery): void {
    this.#leavePlace(tracked);
    const { id, webhookId } = tracked;
    if (!tracked.isRecorded) {
      tracked.state = "unrecorded";
    } else if (tracked.requests.length > 0) {
      tracked.state = "queued_inline";
      this.#inlineQueue.add(webhookId, tracked);
    } else {
      this.#tracked.delete(id);
      if (tracked.delivery?.status === "pending") this.#queue.add(webhookId, { id, webhookId });
    }
  }

  #proceed(tracked: TrackedDelivery): void {
    if (this.#state === "halted") return;
    const isInline = tracked.place === "inline";
    if (isInline !== tracked.requests.length > 0) {
      // Meanwhile somebody wants an attempt, or nobody does any more.
      this.#rest(tracked);
      return;
    }
    const nowMs = this.#options.nowMs();
    const action = nextAction(tracked, this.#options.state.get(tracked.webhookId), nowMs);
    switch (action.kind) {
      case "load":
        this.#load(tracked);
        return;
      case "attempt": {
        const signers = this.#options.signers(action.kept);
        if ("lacking" in signers) {
          this.#postponeUnsent(tracked, signers.lacking);
          return;
        }
        if (isInline) this.requests.begin(tracked);
        else tracked.windowEndMs = action.windowEndMs;
        tracked.state = "attempting";
        this.#jobs.push(jobOf(tracked, action.kept, signers, action.windowEndMs - nowMs));
        return;
      }
      case "delivered":
        this.requests.answerDelivered(tracked);
        this.#rest(tracked);
        return;
      case "give_up":
        this.#unsent.remove(tracked.id);
        // An inline attempt is only given up if the webhook was deleted.
        if (isInline) this.requests.refuseAll(tracked, webhookDeleted(tracked));
        if (tracked.delivery?.status === "pending") this.#records.giveUp(tracked, action.lastError);
        this.#rest(tracked);
        return;
    }
  }

  #load(tracked: TrackedDelivery): void {
    tracked.state = "loading";
    // The front answers behind all records that it was sent before.
    this.#commits.add(this.lastSequence, (isCommitted) => {
      if (isCommitted) this.#options.askForContent(tracked.id);
    });
  }

  /** An attempt has ended. */
  #conclude(tracked: TrackedDelivery, attempt: DeliveryAttempt): void {
    const { current } = tracked;
    tracked.current = null;
    this.#unsent.remove(tracked.id);
    const nowMs = this.#options.nowMs();
    const kept = this.#options.state.get(tracked.webhookId);
    const dueMs = kept && pauseEndMs(tracked, attempt.attemptNumber, kept.webhook, nowMs);
    if (attempt.error === null || current !== null || dueMs === null) {
      this.#records.attempted(tracked, attempt, { status: attempt.error === null ? "delivered" : "failed" });
      if (current !== null) this.requests.answerRecorded(current, tracked);
      this.#rest(tracked);
      return;
    }
    const isOff = this.#state === "halted" || tracked.requests.length > 0 || stopsDelivery(tracked, kept);
    if (isOff || dueMs === undefined || dueMs <= nowMs) {
      this.#records.attempted(tracked, attempt, { status: "pending", nextRetryAtUs: null });
      this.#proceed(tracked);
      return;
    }
    const nextRetryAtUs = attempt.completedAtUs + Math.round((dueMs - nowMs) * 1000);
    this.#records.attempted(tracked, attempt, { status: "pending", nextRetryAtUs });
    tracked.state = "pausing";
    const over = (): void => this.#happensLater(tracked, { event: "pause_over" });
    tracked.pause = this.#options.timers.set(over, dueMs - nowMs);
  }

  /** The front could not give its content. @param reason null: the view does not know it */
  #postpone(tracked: TrackedDelivery, reason: string | null): void {
    this.#leavePlace(tracked);
    this.requests.refuseAll(tracked, notReadError(tracked, tracked.delivery === null && reason === null));
    if (tracked.delivery === null) {
      this.#tracked.delete(tracked.id);
    } else {
      // A new record would lack its history: it stays as it is stored.
      tracked.state = "postponed";
      this.#unsent.remove(tracked.id);
      this.#unreadable.add(tracked.id, reason ?? "the view does not have it");
    }
  }

  /** The machine or the signing key lacked what the attempt needed. Nothing was sent, and it does not count. */
  #postponeUnsent(tracked: TrackedDelivery, reason: string): void {
    const { current } = tracked;
    tracked.current = null;
    this.#leavePlace(tracked);
    const error = new ServiceError("unavailable", `the attempt could not be made: ${reason}`, {});
    if (current !== null) this.requests.answer(current, { error });
    this.requests.refuseAll(tracked, error);
    const isOver = tracked.delivery?.status !== "pending";
    if (isOver || stopsDelivery(tracked, this.#options.state.get(tracked.webhookId))) {
      this.#rest(tracked);
      return;
    }
    // So many may wait that their events would take much memory. What is not kept for all is read again.
    if (tracked.isRecorded) {
      Object.assign(tracked, { payload: this.#keptPayload(tracked.delivery), ownPayload: null, history: [] });
    }
    tracked.state = "postponed";
    this.#unsent.add(tracked.id, reason);
  }

  #leavePlace(tracked: TrackedDelivery): void {
    if (tracked.place === "inline") this.#inlineQueue.ended(tracked.webhookId);
    else if (tracked.place === "automatic") this.#queue.ended(tracked.webhookId);
    tracked.place = null;
  }

  #clearPause(tracked: TrackedDelivery): void {
    if (tracked.pause !== null) this.#options.timers.clear(tracked.pause);
    tracked.pause = null;
  }
}
