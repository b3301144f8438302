import { ServiceError } from "../../../core/service-errors.js";
import type { Delivery } from "../../../core/webhook/delivery.js";
import type { BegunWindow, DeliveryJob } from "../dispatcher-messages.js";
import type { EventPayload } from "./event-payloads.js";
import type { Tracked } from "./tracked-delivery.js";
import type { KeptWebhook, WebhookState } from "./webhook-state.js";

/** What is to be done of a delivery whose turn has come, nothing else of it being under way. */
export type DeliveryAction =
  /** At most so many attempts. */
  | { kind: "attempt"; kept: KeptWebhook; attempts: number }
  /** The front is to be asked for what is stored of it. */
  | { kind: "load" }
  /** No attempt follows: it fails, if it has not come to its end. */
  | { kind: "give_up"; lastError: string }
  /** Only of an inline one: nothing is left to be done, the receiver has it. */
  | { kind: "delivered" };

/** Of one that nobody waits for. */
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

/** Of one that somebody waits for: also of a webhook that is disabled. */
export function inlineAction({ delivery, payload }: Tracked, state: WebhookState): DeliveryAction {
  if (delivery === null || payload === null) return LOAD;
  if (delivery.status === "delivered") return DELIVERED;
  const kept = state.get(delivery.webhookId);
  return kept === undefined ? { kind: "give_up", lastError: DELETED } : { kind: "attempt", kept, attempts: 1 };
}

/** Why whoever waits for an inline attempt gets none. */
export function webhookDeleted({ id, webhookId }: Tracked): ServiceError {
  const params = { field: "delivery_id", in: "path", value: id, webhook_id: webhookId };
  return new ServiceError("webhook_deleted", "the delivery's webhook was deleted", params);
}

/** Of one whose turn is to be attempted: with what is left of its window, or a new one; behind the attempt of another, or at once. */
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
