import type { Delivery, DeliveryAttempt } from "../../core/delivery.js";
import type { ServiceError } from "../../core/service-errors.js";
import type { DeliveryContent } from "../../storage/delivery-records.js";
import type { DeliveryQueue } from "../dispatcher/delivery-queue.js";
import type { BegunWindow } from "../dispatcher/dispatcher-messages.js";
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
export interface InlineWant {
  readonly tracked: Tracked;
  readonly answer: InlineAnswer;
  /** Of its patience; null once its attempt has begun. */
  timer: unknown;
  isAnswered: boolean;
}

/** What is stored of a delivery beside itself. */
export interface TrackedContent {
  history: DeliveryAttempt[];
  payload: EventPayload;
  testPayload: string | null;
}

/**
 * A delivery that something is to be done about. A class, so that all have one layout: there are hundreds for an event, and made as
 * copies of other objects they cost a tenth of the recorder's time.
 */
export class Tracked {
  readonly id: string;
  readonly webhookId: string;
  /** Null while the front has not told. */
  delivery: Delivery | null;
  content: TrackedContent | null = null;
  /**
   * `unseen`: the front's view does not have it yet. `queued`: waits for its turn. `wanted`: waits for the turn of an inline attempt.
   * `loading`: the front was asked. `running`: the dispatcher has it. `unreadable`: waits to be read again. `idle`: nothing is under way.
   */
  phase: "unseen" | "queued" | "wanted" | "loading" | "running" | "unreadable" | "idle";
  /** The queue that it holds a place of. */
  place: DeliveryQueue<Tracked> | null = null;
  /** Inline attempts that are wanted, in order. */
  inline: InlineWant[] = [];
  /** Whose attempt is under way; null for an automatic one. */
  current: InlineWant | null = null;
  /** Of automatic attempts that were broken off and are to go on; null: they have not begun. */
  window: BegunWindow | null = null;
  /** Of its latest record. */
  sequence: number;
  /** False: its outcome waits to be appended. */
  isRecorded = true;

  constructor(id: string, webhookId: string, delivery: Delivery | null, phase: Tracked["phase"], sequence: number) {
    this.id = id;
    this.webhookId = webhookId;
    this.delivery = delivery;
    this.phase = phase;
    this.sequence = sequence;
  }
}
