import type { ServiceError } from "../../../core/service-errors.js";
import type { Delivery, DeliveryAttempt } from "../../../core/webhook/delivery.js";
import type { DeliveryContent } from "../../../storage/records/delivery-records.js";
import type { DeliveryState } from "./delivery-states.js";

/** What the front found of a delivery. Plain data, since it crosses threads. */
export type FoundDelivery =
  | { kind: "content"; content: DeliveryContent }
  | { kind: "unknown" }
  /** It may be readable again later. */
  | { kind: "unreadable"; reason: string };

/** What the front found of a run. Plain data, since it crosses threads. */
export type FoundRun =
  /** The body of its consolidated record. */
  | { kind: "body"; body: Uint8Array }
  /** It is unknown, or has not ended. */
  | { kind: "none" }
  | { kind: "unreadable"; reason: string };

/** Answers a request for an inline attempt, once: with the delivery when its outcome is committed, or with the reason why there is none. */
export type InlineAnswer = (outcome: { deliveryId: string; isDelivered: boolean } | { error: ServiceError }) => void;

/** One inline attempt, a test or a manual retry, that somebody waits for, or one of a resend. */
export interface InlineRequest {
  readonly tracked: TrackedDelivery;
  /** It waits for as long as it takes, and is made even if the receiver has taken the delivery. */
  readonly isResend: boolean;
  readonly answer: InlineAnswer;
  /** The timer that ends its wait; null once its attempt has begun. */
  timer: unknown;
  isAnswered: boolean;
}

/**
 * A delivery that something is done about. One that waits for its turn is only an id in a queue, and in the recorder's state. It is a class,
 * so that all have one memory layout: built of copies, they cost a tenth of the recorder's time.
 */
export class TrackedDelivery {
  readonly id: string;
  readonly webhookId: string;
  state: DeliveryState;
  /** Null while it must be read by the front. */
  delivery: Delivery | null;
  /** Its latest attempts, oldest first. */
  history: readonly DeliveryAttempt[] = [];
  /** Null while it must be read by the front. */
  payload: Uint8Array | null = null;
  /** The payload's text, if only records of the delivery have it. */
  ownPayload: string | null = null;
  /** The places that it takes one of. */
  place: "automatic" | "inline" | null = null;
  /** Requests for inline attempts that have not begun, in order. */
  requests: InlineRequest[] = [];
  /** The request whose attempt is under way; null for an automatic attempt. */
  current: InlineRequest | null = null;
  /** When the window of its automatic attempts ends, in monotonic milliseconds; null before the first of them. */
  windowEndMs: number | null = null;
  /** The timer of its pause. */
  pause: unknown = null;
  /** Sequence number of its latest record, as far as it was made here. */
  sequence = 0;
  /** False: its outcome waits to be appended. */
  isRecorded = true;

  constructor(id: string, webhookId: string, state: DeliveryState, delivery: Delivery | null) {
    this.id = id;
    this.webhookId = webhookId;
    this.state = state;
    this.delivery = delivery;
  }
}
