import type { Delivery, DeliveryAttempt } from "../../../core/webhook/delivery.js";
import type { EmittedEvent } from "../../../core/webhook/emitted-event.js";
import type { Resend } from "../../../core/webhook/resend.js";
import type { Webhook, WebhookSecrets } from "../../../core/webhook/webhook.js";
import type { WebhookChange } from "../../../core/webhook/webhook-change.js";
import type { Signers } from "../../../core/webhook/webhook-signature.js";
import { ResendItemsBuilder } from "../../../storage/records/resend-record.js";

/** One of each thing that webhooks are made of, with something in every field. */
export const WEBHOOK_ID = "019bb000-0000-7000-8000-0000000000a1";
export const DELIVERY_ID = "019bb000-0000-7000-8000-0000000000a2";
export const EVENT_ID = "019bb000-0000-7000-8000-0000000000a3";
export const SECRET = "whsec_aHVzaGh1c2g=";
const TIME_US = 1_780_000_000_000_100;

export const NO_SIGNERS: Signers = { secrets: [], privateKey: null };

/** One secret signs. */
export function signedBy(secret: string): Signers {
  return { secrets: [secret], privateKey: null };
}

export const SECRETS: WebhookSecrets = {
  secret: SECRET,
  previousSecret: "the old one",
  headers: [["X-Gateway-Key", "k 1"]],
};

export const WEBHOOK: Webhook = {
  ...{ id: WEBHOOK_ID, name: "MES µ", url: "http://mes.factory/hook?x=1", subscribedEvents: ["ProgramCompleted"] },
  ...{ onFailureMode: "WARN", enabled: true, deliveryTimeoutSeconds: 1.5, retryBackoffSeconds: 0, maxRetries: 2 },
  ...{ signing: "hmac", hasSecret: true, previousSecretExpiresAtUs: TIME_US + 3, headerNames: ["X-Gateway-Key"] },
  ...{ createdAtUs: TIME_US, updatedAtUs: TIME_US + 1 },
};

export const EVENT: EmittedEvent = {
  ...{ id: EVENT_ID, name: "ProgramCompleted", timeUs: TIME_US + 2, payload: '{"event_id":"x"}' },
  deliveries: [
    { id: DELIVERY_ID, webhookId: WEBHOOK_ID, onFailureMode: "WARN" },
    { id: EVENT_ID, webhookId: EVENT_ID, onFailureMode: "IGNORE", settled: true },
  ],
};

export function failedDelivery(runId: string | null): Delivery {
  return {
    ...{ id: DELIVERY_ID, webhookId: WEBHOOK_ID, runId, eventId: EVENT_ID, eventName: "ProgramCompleted" },
    ...{ onFailureMode: "WARN", status: "failed", attempts: 3, lastStatusCode: 503, lastError: "the réceiver" },
    ...{ nextRetryAtUs: null, deliveredAtUs: null, createdAtUs: TIME_US + 2 },
    updatedAtUs: TIME_US + 9,
    firstFailure: { atUs: TIME_US + 7, statusCode: 404, error: "fírst", webhookName: "MES" },
  };
}

export const ATTEMPT: DeliveryAttempt = {
  ...{ attemptNumber: 3, startedAtUs: TIME_US + 5, completedAtUs: TIME_US + 8, statusCode: 503 },
  ...{
    responseBody: "no\u0000",
    responseHeaders: { "retry-after": "1" },
    responseTruncated: true,
    error: "the receiver answered 503",
  },
};

export const RESEND: Resend = {
  ...{ id: "019bb000-0000-7000-8000-0000000000a4", webhookId: WEBHOOK_ID, perSecond: 20 },
  ...{ deliveries: 2, attempted: 0, delivered: 0, failed: 0, state: "running" },
};

/** A resend of one delivery, and of one missed event. */
export function resendItems(runId: string): Uint8Array {
  const builder = new ResendItemsBuilder(2);
  builder.add({ deliveryId: DELIVERY_ID, missed: null });
  builder.add({ deliveryId: EVENT_ID, missed: { runId, eventName: "ProgramFailed" } });
  return builder.bytes;
}

export function resendChanges(runId: string): WebhookChange[] {
  return [
    { kind: "resend_put", resend: RESEND, items: resendItems(runId) },
    {
      kind: "resend_put",
      resend: { ...RESEND, attempted: 2, delivered: 1, failed: 1, state: "done" },
      items: new Uint8Array(0),
    },
  ];
}

export function webhookChanges(runId: string): WebhookChange[] {
  const delivery = failedDelivery(runId);
  return [
    { kind: "webhook_put", webhook: WEBHOOK, secrets: SECRETS },
    { kind: "webhook_deleted", webhook: { id: WEBHOOK_ID, name: WEBHOOK.name } },
    { kind: "delivery_put", delivery, history: [ATTEMPT], payload: null },
  ];
}
