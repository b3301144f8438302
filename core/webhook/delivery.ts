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

/** One attempt to deliver that has ended. */
export interface DeliveryAttempt {
  /** Counts from 1, manual retries included. */
  attemptNumber: number;
  startedAtUs: number;
  completedAtUs: number;
  /** Null when no answer came. */
  statusCode: number | null;
  /** The first `LIMITS.answerBodyBytes`, as text. */
  responseBody: string | null;
  /** The first `LIMITS.answerHeaderBytes` of them. */
  responseHeaders: Record<string, string> | null;
  /** True when body or headers were longer than what is kept, or the body broke off. */
  responseTruncated: boolean;
  /** Null when the receiver took the event (2xx). */
  error: string | null;
}

/** How a delivery failed, as known at that time. */
export interface DeliveryFailure {
  atUs: number;
  statusCode: number | null;
  /** Null only in older records, which do not say. */
  error: string | null;
  /** Null when the webhook was deleted, or in older records: then the name that the service knows now applies. */
  webhookName: string | null;
}

/** All that is known of a delivery, without the payload, which is stored once for all deliveries of the event. */
export interface Delivery {
  id: string;
  webhookId: string;
  /** The run of the event; null for WebhookTest. */
  runId: string | null;
  eventId: string;
  eventName: EventName;
  /** The webhook's mode when the event was emitted. */
  onFailureMode: OnFailureMode;
  status: DeliveryStatus;
  /** Count of attempts made. */
  attempts: number;
  lastStatusCode: number | null;
  lastError: string | null;
  /** Set only during the pause before a further attempt. A crash ends the pause. */
  nextRetryAtUs: number | null;
  deliveredAtUs: number | null;
  /** How it failed the first time; it never changes afterwards. With WARN the run's event log notes it. */
  firstFailure: DeliveryFailure | null;
  createdAtUs: number;
  updatedAtUs: number;
}
