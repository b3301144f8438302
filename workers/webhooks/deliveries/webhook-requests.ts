/** What the front asks of the recorder about webhooks: writes by HTTP, answered when they are committed. Plain data only. */
import type { ErrorData } from "../../../core/service-errors.js";
import type { CreateWebhook, UpdateWebhook } from "../../../core/webhook/webhook-request.js";

export type WebhookRequest =
  | { op: "create"; webhook: CreateWebhook }
  | { op: "update"; webhookId: string; change: UpdateWebhook }
  | { op: "delete"; webhookId: string }
  /** One attempt with a synthetic event. */
  | { op: "test"; webhookId: string }
  /** One attempt more of a delivery that was not taken. */
  | { op: "retry"; deliveryId: string; webhookId: string };

/** `id`: of the webhook that was created, updated or deleted, of the delivery that was made. */
export type WebhookReply = { ok: true; id: string } | { ok: false; error: ErrorData };
