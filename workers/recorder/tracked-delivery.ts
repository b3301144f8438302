import type { Delivery, DeliveryAttempt } from "../../core/delivery.js";
import type { ServiceError } from "../../core/service-errors.js";
import type { DeliveryContent } from "../../storage/delivery-records.js";
import type { DeliveryQueue } from "../dispatcher/delivery-queue.js";
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

/** A delivery that something is to be done about. */
export interface Tracked {
  readonly id: string;
  readonly webhookId: string;
  /** Null while the front has not told. */
  delivery: Delivery | null;
  content: { history: DeliveryAttempt[]; payload: EventPayload; testPayload: string | null } | null;
  /**
   * `unseen`: the front's view does not have it yet. `queued`: waits for its turn. `wanted`: waits for the turn of an inline attempt.
   * `loading`: the front was asked. `running`: the dispatcher has it. `unreadable`: waits to be read again. `idle`: nothing is under way.
   */
  phase: "unseen" | "queued" | "wanted" | "loading" | "running" | "unreadable" | "idle";
  /** The queue that it holds a place of. */
  place: DeliveryQueue<Tracked> | null;
  /** Inline attempts that are wanted, in order. */
  inline: InlineWant[];
  /** Whose attempt is under way; null for an automatic one. */
  current: InlineWant | null;
  /** Of its latest record. */
  sequence: number;
  /** False: its outcome waits to be appended. */
  isRecorded: boolean;
}

export function trackedDelivery(one: Pick<Tracked, "id" | "webhookId" | "delivery" | "phase" | "sequence">): Tracked {
  return { ...one, content: null, place: null, inline: [], current: null, isRecorded: true };
}
