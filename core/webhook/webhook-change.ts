import type { Delivery, DeliveryAttempt } from "./delivery.js";
import type { Resend } from "./resend.js";
import type { Webhook, WebhookSecrets } from "./webhook.js";

/** What a record about webhooks or deliveries says; a record holds one of these. */
export type WebhookChange =
  /** The webhook as it is from now on. Here and in the record, what is write-only is kept apart from what is shown. */
  | { kind: "webhook_put"; webhook: Webhook; secrets: WebhookSecrets }
  /** Id and name are kept, because its deliveries stay readable. */
  | { kind: "webhook_deleted"; webhook: Pick<Webhook, "id" | "name"> }
  /** A resend begins, with its deliveries as storage/records/resend-record.ts has them; or it ends, and `items` is empty. */
  | { kind: "resend_put"; resend: Resend; items: Uint8Array }
  | DeliveryPut;

/** The whole delivery after an attempt. It replaces all earlier records of the delivery. */
export interface DeliveryPut {
  kind: "delivery_put";
  delivery: Delivery;
  /** The latest attempts, oldest first; at most `LIMITS.attemptsPerDelivery`. */
  history: readonly DeliveryAttempt[];
  /** The payload of a WebhookTest, which no run keeps; null for a run's event. */
  payload: string | null;
}
