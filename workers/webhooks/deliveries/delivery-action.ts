import { ServiceError } from "../../../core/service-errors.js";
import type { Delivery } from "../../../core/webhook/delivery.js";
import { newDelivery } from "../../../core/webhook/emit-run-event.js";
import type { Webhook } from "../../../core/webhook/webhook.js";
import { type EventSource, testEventPayload } from "../../../core/webhook/webhook-event.js";
import type { BegunWindow, DeliveryJob } from "../dispatcher-messages.js";
import type { EventPayload } from "./event-payloads.js";
import type { Tracked } from "./tracked-delivery.js";
import type { KeptWebhook, WebhookState } from "./webhook-state.js";

/** What to do with a delivery that was taken from its queue. Nothing else of it is under way. */
export type DeliveryAction =
  /** Attempt it, at most so often. */
  | { kind: "attempt"; kept: KeptWebhook; attempts: number }
  /** Ask the front for its stored content. */
  | { kind: "load" }
  /** Fail it, if it has not ended: no attempt follows. */
  | { kind: "give_up"; lastError: string }
  /** Only for an inline attempt: nothing, since the receiver has taken it. */
  | { kind: "delivered" };

/** The action for a delivery that nobody waits for. */
export type AutomaticAction = Exclude<DeliveryAction, { kind: "delivered" }>;

const LOAD: AutomaticAction = { kind: "load" };
const DELIVERED: DeliveryAction = { kind: "delivered" };
const DELETED = "the webhook was deleted";

export function automaticAction({ delivery, payload }: Tracked, state: WebhookState): AutomaticAction {
  if (delivery === null || payload === null) return LOAD;
  const kept = state.get(delivery.webhookId);
  const isTest = delivery.eventName === "WebhookTest";
  if (kept === undefined) return { kind: "give_up", lastError: DELETED };
  if (!kept.webhook.enabled && !isTest) return { kind: "give_up", lastError: "the webhook was disabled" };
  const attempts = isTest ? 1 : 1 + kept.webhook.maxRetries;
  return { kind: "attempt", kept, attempts: Math.max(1, attempts - delivery.attempts) };
}

/** The action for a delivery that somebody waits for. It is attempted even if its webhook is disabled. */
export function inlineAction({ delivery, payload }: Tracked, state: WebhookState): DeliveryAction {
  if (delivery === null || payload === null) return LOAD;
  if (delivery.status === "delivered") return DELIVERED;
  const kept = state.get(delivery.webhookId);
  return kept === undefined ? { kind: "give_up", lastError: DELETED } : { kind: "attempt", kept, attempts: 1 };
}

/** The answer to a request for an attempt whose webhook was deleted. */
export function webhookDeleted({ id, webhookId }: Tracked): ServiceError {
  const params = { field: "delivery_id", in: "path", value: id, webhook_id: webhookId };
  return new ServiceError("webhook_deleted", "the delivery's webhook was deleted", params);
}

/**
 * The dispatcher's job for a delivery.
 *
 * @param window what is left of its window; null: a new one
 * @param afterId the delivery whose end it waits for; null: it begins at once
 */
export function jobOf(
  tracked: Tracked,
  { webhook, secret }: KeptWebhook,
  attempts: number,
  window: BegunWindow | null,
  afterId: string | null,
): DeliveryJob {
  const { delivery, payload } = tracked as { delivery: Delivery; payload: EventPayload };
  return {
    deliveryId: tracked.id,
    afterId,
    eventId: delivery.eventId,
    eventName: delivery.eventName,
    url: webhook.url,
    secret,
    window,
    firstAttemptNumber: delivery.attempts + 1,
    attempts,
    timeoutMs: webhook.deliveryTimeoutSeconds * 1000,
    backoffMs: webhook.retryBackoffSeconds * 1000,
    payload: payload.bytes,
  };
}

/** The answer to a request for a delivery that the front could not read. @param isUnknown there is no such delivery */
export function notReadError({ id }: Tracked, isUnknown: boolean): ServiceError {
  const params = { field: "delivery_id", in: "path", value: id };
  if (isUnknown) return new ServiceError("delivery_not_found", "no delivery has this id", params);
  return new ServiceError("internal_error", "the delivery's stored data cannot be read", params);
}

/** A new delivery of a synthetic event, with the event's payload. */
export function testDelivery(
  webhook: Webhook,
  source: EventSource,
  timeUs: number,
  newId: (timeUs: number) => string,
): { delivery: Delivery; payload: string } {
  const eventId = newId(timeUs);
  const payload = testEventPayload(source, eventId, webhook, timeUs);
  const begun = { id: newId(timeUs), webhookId: webhook.id, onFailureMode: webhook.onFailureMode };
  return { delivery: newDelivery(begun, { id: eventId, name: "WebhookTest", timeUs }, null), payload };
}
