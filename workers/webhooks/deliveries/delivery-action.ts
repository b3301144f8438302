import { LIMITS } from "../../../core/limits.js";
import { ServiceError, unknownId } from "../../../core/service-errors.js";
import type { Delivery } from "../../../core/webhook/delivery.js";
import { newDelivery } from "../../../core/webhook/emit-run-event.js";
import type { Webhook } from "../../../core/webhook/webhook.js";
import { type EventSource, testEventPayload } from "../../../core/webhook/webhook-event.js";
import type { Signers } from "../../../core/webhook/webhook-signature.js";
import type { DeliveryJob } from "../dispatcher/dispatcher-messages.js";
import type { TrackedDelivery } from "./tracked-delivery.js";
import type { KeptWebhook } from "./webhook-state.js";

/** What `proceed` does. */
export type DeliveryAction =
  /** Attempt it now, within the rest of its window. */
  | { kind: "attempt"; kept: KeptWebhook; windowEndMs: number }
  /** Ask the front for its stored content. */
  | { kind: "load" }
  /** End it without a further attempt. If it is pending, it fails. */
  | { kind: "give_up"; lastError: string | null }
  /** Only for an inline attempt: nothing, since the receiver has taken it. */
  | { kind: "delivered" };

/**
 * What to do with a delivery whose turn has come. An inline attempt is made even if the webhook is disabled.
 *
 * @param kept the webhook as it is now; undefined when it was deleted
 */
export function nextAction(tracked: TrackedDelivery, kept: KeptWebhook | undefined, nowMs: number): DeliveryAction {
  const { delivery, payload, windowEndMs } = tracked;
  const isInline = tracked.place === "inline";
  if (delivery === null || payload === null) return { kind: "load" };
  const isWantedAgain = tracked.requests.at(0)?.isResend === true;
  if (isInline && delivery.status === "delivered" && !isWantedAgain) return { kind: "delivered" };
  if (kept === undefined) return { kind: "give_up", lastError: "the webhook was deleted" };
  if (!isInline && stopsDelivery(tracked, kept)) {
    return { kind: "give_up", lastError: "the webhook was disabled" };
  }
  const newEndMs = nowMs + LIMITS.dispatchWindowMs;
  if (isInline || windowEndMs === null) return { kind: "attempt", kept, windowEndMs: newEndMs };
  // The pause has ended too late, for example on a busy machine.
  if (nowMs >= windowEndMs) return { kind: "give_up", lastError: delivery.lastError };
  return { kind: "attempt", kept, windowEndMs };
}

/** Whether the webhook, as it is now, ends the delivery's automatic attempts. */
export function stopsDelivery({ delivery }: TrackedDelivery, kept: KeptWebhook | undefined): boolean {
  return kept === undefined || (!kept.webhook.enabled && delivery?.eventName !== "WebhookTest");
}

/** The dispatcher's job for the next attempt. */
export function jobOf(
  tracked: TrackedDelivery,
  { webhook, secrets }: KeptWebhook,
  signers: Signers,
  windowLeftMs: number,
): DeliveryJob {
  const { delivery, payload } = tracked as { delivery: Delivery; payload: Uint8Array };
  return {
    deliveryId: tracked.id,
    attemptNumber: delivery.attempts + 1,
    eventId: delivery.eventId,
    eventName: delivery.eventName,
    url: webhook.url,
    signers,
    headers: secrets.headers,
    timeoutMs: webhook.deliveryTimeoutSeconds * 1000,
    windowLeftMs,
    payload,
  };
}

/** The answer to a request for an attempt whose webhook was deleted. */
export function webhookDeleted({ id, webhookId }: TrackedDelivery): ServiceError {
  const params = { field: "delivery_id", in: "path", value: id, webhook_id: webhookId };
  return new ServiceError("webhook_deleted", "the delivery's webhook was deleted", params);
}

/** The answer to a request for a delivery that the front could not read. @param isUnknown there is no such delivery */
export function notReadError({ id }: TrackedDelivery, isUnknown: boolean): ServiceError {
  if (isUnknown) return unknownId("delivery", id);
  const params = { field: "delivery_id", in: "path", value: id };
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
