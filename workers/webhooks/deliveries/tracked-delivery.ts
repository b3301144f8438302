import type { ServiceError } from "../../../core/service-errors.js";
import type { Delivery, DeliveryAttempt } from "../../../core/webhook/delivery.js";
import { BegunDelivery } from "../../../core/webhook/emit-run-event.js";
import type { DeliveryContent } from "../../../storage/records/delivery-records.js";
import type { DeliveryQueue } from "../delivery-queue.js";
import type { BegunWindow } from "../dispatcher-messages.js";
import type { EventPayload } from "./event-payloads.js";

/** What the front found of a delivery. Plain data, since it crosses threads. */
export type FoundDelivery =
  | { kind: "content"; content: DeliveryContent }
  | { kind: "unknown" }
  /** It may be readable again later. */
  | { kind: "unreadable"; reason: string };

/** Answers a request for an inline attempt, once: with the delivery when its outcome is committed, or with the reason why there is none. */
export type InlineAnswer = (outcome: { deliveryId: string } | { error: ServiceError }) => void;

/** One inline attempt that somebody waits for. */
export interface InlineRequest {
  readonly tracked: Tracked;
  readonly answer: InlineAnswer;
  /** The timer that ends its wait; null once its attempt has begun. */
  timer: unknown;
  isAnswered: boolean;
}

/** Shared by the many deliveries that have no attempts and no requests. */
const NONE: readonly never[] = Object.freeze([]);

/**
 * A delivery with something left to do. It is a class, so that all have one memory layout: an event has hundreds, and as copies of other
 * objects they cost a tenth of the recorder's time.
 */
export class Tracked {
  readonly id: string;
  readonly webhookId: string;
  #delivery: Delivery | BegunDelivery | null;
  /** Its attempts until now. */
  history: readonly DeliveryAttempt[] = NONE;
  /** Null while it must be read by the front. */
  payload: EventPayload | null = null;
  /** The payload's text, for a test. */
  testPayload: string | null = null;
  /**
   * `unseen`: the front's view does not have it yet. `queued`: waits in the queue. `wanted`: waits in the queue of inline attempts.
   * `loading`: the front reads it. `running`: the dispatcher has it. `unreadable`: waits to be read again. `idle`: nothing is under way.
   */
  phase: "unseen" | "queued" | "wanted" | "loading" | "running" | "unreadable" | "idle";
  /** The queue that counts it as running. */
  place: DeliveryQueue<Tracked> | null = null;
  /** Requests for inline attempts that have not begun, in order. */
  #inline: readonly InlineRequest[] = NONE;
  /** The request whose attempt is under way; null for an automatic attempt. */
  current: InlineRequest | null = null;
  /** The window of automatic attempts that were interrupted and go on later; null: they have not begun. */
  window: BegunWindow | null = null;
  /** Sequence number of its latest record. */
  sequence: number;
  /** False: its outcome waits to be appended. */
  isRecorded = true;

  constructor(
    id: string,
    webhookId: string,
    delivery: Delivery | BegunDelivery | null,
    phase: Tracked["phase"],
    sequence: number,
  ) {
    this.id = id;
    this.webhookId = webhookId;
    this.#delivery = delivery;
    this.phase = phase;
    this.sequence = sequence;
  }

  /** Null until the front has read it. */
  get delivery(): Delivery | null {
    if (this.#delivery instanceof BegunDelivery) this.#delivery = this.#delivery.toDelivery();
    return this.#delivery;
  }

  set delivery(delivery: Delivery) {
    this.#delivery = delivery;
  }

  get isAwaited(): boolean {
    return this.#inline.length > 0;
  }

  addRequest(one: InlineRequest): void {
    this.#inline = [...this.#inline, one];
  }

  /** @returns false if the request is not waiting here */
  removeRequest(one: InlineRequest): boolean {
    const isWanted = this.#inline.includes(one);
    if (isWanted) this.#inline = this.#inline.filter((other) => other !== one);
    return isWanted;
  }

  /** Removes and gives the first request. */
  takeRequest(): InlineRequest | undefined {
    const [first, ...others] = this.#inline;
    this.#inline = others;
    return first;
  }

  /** Removes and gives all requests. */
  takeRequests(): readonly InlineRequest[] {
    const all = this.#inline;
    this.#inline = NONE;
    return all;
  }
}
