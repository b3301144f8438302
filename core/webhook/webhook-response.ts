import type { EventLogEntry } from "../run/run-state.js";
import { formatTimeUs, timeText } from "../timestamps.js";
import type { Delivery, DeliveryAttempt } from "./delivery.js";
import type { Webhook } from "./webhook.js";

/** A delivery with the current name of its webhook. */
export interface NamedDelivery {
  readonly delivery: Delivery;
  readonly webhookName: string;
}

/** How a webhook's deliveries went: those of 24 hours, and the last ones of any time. */
export interface WebhookFigures {
  readonly delivered: number;
  readonly failed: number;
  readonly lastSuccessAtUs: number | null;
  readonly lastFailureAtUs: number | null;
  readonly lastError: string | null;
}

/** The answer about one webhook. @param wallUs the machine's clock */
export function webhookResponse(webhook: Webhook, figures: WebhookFigures, wallUs: number) {
  const expiresAtUs = webhook.previousSecretExpiresAtUs;
  return {
    id: webhook.id,
    name: webhook.name,
    url: webhook.url,
    subscribed_events: webhook.subscribedEvents,
    on_failure_mode: webhook.onFailureMode,
    enabled: webhook.enabled,
    has_secret: webhook.hasSecret,
    previous_secret_expires_at: timeText(expiresAtUs !== null && expiresAtUs > wallUs ? expiresAtUs : null),
    header_names: webhook.headerNames,
    delivery_timeout_seconds: webhook.deliveryTimeoutSeconds,
    retry_backoff_seconds: webhook.retryBackoffSeconds,
    max_retries: webhook.maxRetries,
    signing: webhook.signing,
    deliveries_24h: { delivered: figures.delivered, failed: figures.failed },
    last_success_at: timeText(figures.lastSuccessAtUs),
    last_failure_at: timeText(figures.lastFailureAtUs),
    last_error: figures.lastError,
    created_at: formatTimeUs(webhook.createdAtUs),
    updated_at: formatTimeUs(webhook.updatedAtUs),
  };
}

/**
 * A WebhookDeliveryResponse as JSON text, or with `history` (oldest first) a WebhookDeliveryDetailResponse. The payload goes in byte for byte
 * as it is posted.
 */
export function deliveryJson(delivery: Delivery, payload: string, history?: readonly DeliveryAttempt[]): string {
  const fields = {
    id: delivery.id,
    webhook_id: delivery.webhookId,
    program_run_id: delivery.runId,
    event_name: delivery.eventName,
    on_failure_mode: delivery.onFailureMode,
    status: delivery.status,
    attempts: delivery.attempts,
    last_status_code: delivery.lastStatusCode,
    last_error: delivery.lastError,
    next_retry_at: timeText(delivery.nextRetryAtUs),
    delivered_at: timeText(delivery.deliveredAtUs),
    created_at: formatTimeUs(delivery.createdAtUs),
    updated_at: formatTimeUs(delivery.updatedAtUs),
    ...(history !== undefined && { attempt_history: history.toReversed().map(attemptResponse) }),
  };
  return `${JSON.stringify(fields).slice(0, -1)},"payload":${payload}}`;
}

export function testResponse({ id, status, lastStatusCode, lastError }: Delivery) {
  return { delivered: status === "delivered", status_code: lastStatusCode, error: lastError, delivery_id: id };
}

export function deliverySummary({ delivery, webhookName }: NamedDelivery) {
  return {
    id: delivery.id,
    webhook_id: delivery.webhookId,
    webhook_name: webhookName,
    event_name: delivery.eventName,
    status: delivery.status,
    on_failure_mode: delivery.onFailureMode,
    attempts: delivery.attempts,
    last_error: delivery.lastError,
  };
}

/** `all_ok` means that no delivery failed and none is pending. */
export function deliveryRollup(deliveries: readonly NamedDelivery[]) {
  const count = (status: Delivery["status"]): number =>
    deliveries.reduce((sum, { delivery }) => sum + (delivery.status === status ? 1 : 0), 0);
  const [delivered, failed, pending] = [count("delivered"), count("failed"), count("pending")];
  return { delivered, failed, pending, all_ok: failed === 0 && pending === 0 };
}

/**
 * The line that on_failure_mode WARN adds to the run's event log when the delivery fails for the first time. It is made from the delivery's own
 * record, so a crash cannot lose it; like everything about deliveries, it does not move the run's updated_at.
 */
export function failureNote({ delivery, webhookName }: NamedDelivery): EventLogEntry[] {
  const { id, webhookId, eventName, onFailureMode, firstFailure } = delivery;
  if (onFailureMode !== "WARN" || firstFailure === null) return [];
  const data = {
    delivery_id: id,
    webhook_id: webhookId,
    webhook_name: firstFailure.webhookName ?? webhookName,
    event_name: eventName,
    status: "failed",
    last_status_code: firstFailure.statusCode,
    last_error: firstFailure.error,
  };
  return [{ timestampUs: firstFailure.atUs, eventType: "webhook_delivery_failed", data }];
}

function attemptResponse(attempt: DeliveryAttempt) {
  return {
    attempt_number: attempt.attemptNumber,
    started_at: formatTimeUs(attempt.startedAtUs),
    completed_at: formatTimeUs(attempt.completedAtUs),
    status_code: attempt.statusCode,
    response_body: attempt.responseBody,
    response_headers: attempt.responseHeaders,
    response_truncated: attempt.responseTruncated,
    error: attempt.error,
  };
}
