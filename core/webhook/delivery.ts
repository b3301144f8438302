import { valuesOf } from "../json/closed-set.js";
import type { EventName, OnFailureMode } from "./webhook.js";

export const DELIVERY_STATUS_MEANINGS = {
  pending: "attempts are still to come, or one is under way.",
  delivered: "the receiver took it: it answered with a 2xx status.",
  failed:
    "no attempt succeeded. No further attempt is made by itself: retry it, or read what was missed by `GET /runs`.",
  exhausted:
    "**Legacy.** A delivery of an earlier release that had used up its background retries. No new delivery gets it.",
} as const;
export type DeliveryStatus = keyof typeof DELIVERY_STATUS_MEANINGS;
export const DELIVERY_STATUSES = valuesOf(DELIVERY_STATUS_MEANINGS);

/** One attempt to deliver, once it has ended. */
export interface DeliveryAttempt {
  /** Counts from 1, manual retries among them. */
  attemptNumber: number;
  startedAtUs: number;
  completedAtUs: number;
  /** Null: no answer came. */
  statusCode: number | null;
  /** At most `LIMITS.answerBodyBytes` of it, as text. */
  responseBody: string | null;
  /** At most `LIMITS.answerHeaderBytes` of them. */
  responseHeaders: Record<string, string> | null;
  /** There was more of body or headers than is kept, or the body broke off. */
  responseTruncated: boolean;
  /** Null: the receiver took the event (2xx). */
  error: string | null;
}

/** How a delivery failed, as it was then. */
export interface DeliveryFailure {
  atUs: number;
  statusCode: number | null;
  /** Null only where older records do not say. */
  error: string | null;
  /** Null: the webhook was deleted, whose name is kept, or an older record, which does not say: that of now. */
  webhookName: string | null;
}

/** What is known of a delivery; the event's payload is stored once for all its deliveries. */
export interface Delivery {
  id: string;
  webhookId: string;
  /** Of the event; null for WebhookTest. */
  runId: string | null;
  eventId: string;
  eventName: EventName;
  /** The webhook's when the event was emitted. */
  onFailureMode: OnFailureMode;
  status: DeliveryStatus;
  /** Attempts made. */
  attempts: number;
  lastStatusCode: number | null;
  lastError: string | null;
  /** Only in the pause before a further attempt within the dispatch window; a pause that was broken off by a crash is over. */
  nextRetryAtUs: number | null;
  deliveredAtUs: number | null;
  /** How it failed first: with WARN, what the run's event log notes. Whatever comes later leaves it as it was. */
  firstFailure: DeliveryFailure | null;
  createdAtUs: number;
  updatedAtUs: number;
}
