import type { Delivery, DeliveryAttempt } from "./delivery.js";
import type { Webhook } from "./webhook.js";

/** What the records of webhooks and deliveries say; a record holds one of these. */
export type WebhookChange =
  /** The webhook as it stands from now on. The secret is apart from what is shown, here and in the record. */
  | { kind: "webhook_put"; webhook: Webhook; secret: string | null }
  /** Name and id stay known: its deliveries stay readable. */
  | { kind: "webhook_deleted"; webhook: Pick<Webhook, "id" | "name"> }
  | DeliveryPut;

/** A delivery as it stands after an attempt, whole: it replaces every earlier one of the delivery. */
export interface DeliveryPut {
  kind: "delivery_put";
  delivery: Delivery;
  /** Oldest first, the latest `LIMITS.attemptsPerDelivery`. */
  history: readonly DeliveryAttempt[];
  /** Of WebhookTest, which no run keeps; null for a run's event. */
  payload: string | null;
}
