import type { ServiceError } from "../../../core/service-errors.js";
import type { Delivery, DeliveryAttempt } from "../../../core/webhook/delivery.js";
import { BegunDelivery } from "../../../core/webhook/emit-run-event.js";
import type { DeliveryContent } from "../../../storage/records/delivery-records.js";
import type { DeliveryQueue } from "../delivery-queue.js";
import type { BegunWindow } from "../dispatcher-messages.js";
import type { EventPayload } from "./event-payloads.js";

/** What the front found of a delivery; plain data: it crosses threads. */
export type FoundDelivery =
  | { kind: "content"; content: DeliveryContent }
  | { kind: "unknown" }
  /** It may be readable again later. */
  | { kind: "unreadable"; reason: string };

/** Who waits for an inline attempt; called once: when its outcome is committed, or with why there is none. */
export type InlineAnswer = (outcome: { deliveryId: string } | { error: ServiceError }) => void;

/** One inline attempt that somebody waits for. */
export interface InlineRequest {
  readonly tracked: Tracked;
  readonly answer: InlineAnswer;
  /** Of its patience; null once its attempt has begun. */
  timer: unknown;
  isAnswered: boolean;
}

/** What nearly all have of attempts, and of those that wait for one. */
const NONE: readonly never[] = Object.freeze([]);

/**
 * A delivery that something is to be done about. A class, so that all have one layout: there are hundreds for an event, and made as
 * copies of other objects they cost a tenth of the recorder's time. One object until its turn comes: what waits outlives collections.
 */
export class Tracked {
  readonly id: string;
  readonly webhookId: string;
  #delivery: Delivery | BegunDelivery | null;
  /** Of it the front tells, where it is not known: its attempts until now, its event's bytes, and for a test their text. */
  history: readonly DeliveryAttempt[] = NONE;
  payload: EventPayload | null = null;
  testPayload: string | null = null;
  /**
   * `unseen`: the front's view does not have it yet. `queued`: waits for its turn. `wanted`: waits for the turn of an inline attempt.
   * `loading`: the front was asked. `running`: the dispatcher has it. `unreadable`: waits to be read again. `idle`: nothing is under way.
   */
  phase: "unseen" | "queued" | "wanted" | "loading" | "running" | "unreadable" | "idle";
  /** The queue that it holds a place of. */
  place: DeliveryQueue<Tracked> | null = null;
  /** Inline attempts that are wanted, in order. */
  #inline: readonly InlineRequest[] = NONE;
  /** Whose attempt is under way; null for an automatic one. */
  current: InlineRequest | null = null;
  /** Of automatic attempts that were broken off and are to go on; null: they have not begun. */
  window: BegunWindow | null = null;
  /** Of its latest record. */
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

  /** Null while the front has not told. */
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

  /** False: it was not among them. */
  removeRequest(one: InlineRequest): boolean {
    const isWanted = this.#inline.includes(one);
    if (isWanted) this.#inline = this.#inline.filter((other) => other !== one);
    return isWanted;
  }

  /** The first of them, which is wanted no more. */
  takeRequest(): InlineRequest | undefined {
    const [first, ...others] = this.#inline;
    this.#inline = others;
    return first;
  }

  /** All of them, which are wanted no more. */
  takeRequests(): readonly InlineRequest[] {
    const all = this.#inline;
    this.#inline = NONE;
    return all;
  }
}
