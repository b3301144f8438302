/** What the front asks the recorder to do about webhooks. These are writes by HTTP, answered when they are committed. Plain data only. */
import type { ErrorData } from "../../core/service-errors.js";
import type { CreateWebhook, RotateSecret, UpdateWebhook } from "../../core/webhook/webhook-request.js";

export type WebhookRequest =
  | { op: "create"; webhook: CreateWebhook }
  | { op: "update"; webhookId: string; change: UpdateWebhook }
  | { op: "delete"; webhookId: string }
  | { op: "rotate_secret"; webhookId: string; rotation: RotateSecret }
  /** Makes the service's signing key, if there is none yet. */
  | { op: "signing_key" }
  /** One attempt of each of these deliveries: `items` as storage/records/resend-record.ts has them, at least one. They go to the recorder. */
  | { op: "resend"; webhookId: string; perSecond: number; items: Uint8Array<ArrayBuffer> }
  /** Refused while a resend of this webhook runs. */
  | { op: "require_no_resend"; webhookId: string }
  | { op: "resend_figures" | "cancel_resend"; webhookId: string; resendId: string }
  /** One attempt with a synthetic event. */
  | { op: "test"; webhookId: string }
  /** One more attempt of a delivery that the receiver has not taken. */
  | { op: "retry"; deliveryId: string; webhookId: string };

/**
 * `id` is the webhook that was created, changed or deleted, the delivery that was attempted, the resend that has begun or was cancelled; or the public
 * key in PEM, or a resend's figures as JSON.
 */
export type WebhookReply = { ok: true; id: string } | { ok: false; error: ErrorData };
