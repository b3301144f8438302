import { valuesOf } from "../json/closed-set.js";
import type { DeliveryStatus } from "./delivery.js";
import type { RunEventName } from "./webhook.js";

/** Which deliveries a resend can choose. */
export const RESENT_MEANINGS = {
  failed: "no attempt succeeded.",
  exhausted: "**Legacy.** A failed delivery of an earlier release.",
  delivered: "the receiver took it before; it gets it again.",
  missed:
    "an event of a run that the webhook subscribes to now, and of which it has no delivery: it was disabled, did not subscribe, or did not exist.",
} as const satisfies Partial<Record<DeliveryStatus | "missed", string>>;
export type ResentStatus = keyof typeof RESENT_MEANINGS;

export const RESEND_STATE_MEANINGS = {
  running: "deliveries are still to be attempted.",
  done: "each delivery had its attempt.",
  cancelled:
    "somebody ended it, or the webhook was deleted. Attempts that had begun, at most eight, still end, and are counted then.",
} as const;
export type ResendState = keyof typeof RESEND_STATE_MEANINGS;
export const RESEND_STATES = valuesOf(RESEND_STATE_MEANINGS);

/** What came of a resend until now. */
export interface ResendFigures {
  /** How many it has chosen. */
  deliveries: number;
  attempted: number;
  /** By the latest attempt of each. Those whose stored data cannot be read have failed without an attempt. */
  delivered: number;
  failed: number;
  state: ResendState;
}

/** One more attempt of each of some deliveries to a webhook, oldest first. */
export interface Resend extends ResendFigures {
  id: string;
  webhookId: string;
  /** Attempts that begin within a second at most. */
  perSecond: number;
}

/** One delivery of a resend. */
export interface ResendItem {
  deliveryId: string;
  /** The event of a delivery that does not exist yet: it begins with its attempt. Null for one that exists. */
  missed: MissedEvent | null;
}

export interface MissedEvent {
  runId: string;
  eventName: RunEventName;
}

/** Which deliveries of a webhook a client wants to resend. */
export interface ResendQuery {
  /** Deliveries created from this time on, and events from this time on. */
  sinceUs: number;
  /** And before this one. */
  untilUs: number;
  statuses: readonly ResentStatus[];
  /** Undefined: all. */
  eventNames: readonly string[] | undefined;
}
