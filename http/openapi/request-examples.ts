import type { ResendBody, RotateSecretBody, WebhookRequestBody } from "../../core/webhook/webhook-request.js";

/** Example bodies of requests, by operation. test/http/openapi/interface-document.test.ts sends them; the answers are the response examples. */
export const REQUEST_EXAMPLES: Readonly<Record<string, WebhookRequestBody | RotateSecretBody | ResendBody>> = {
  createWebhook: {
    name: "Line display",
    url: "http://display.factory:8080/runs",
    subscribed_events: ["ProgramStarted", "ProgramCompleted", "ProgramFailed", "ProgramCancelled"],
    on_failure_mode: "WARN",
    max_retries: 5,
    secret: "whsec_ZXhhbXBsZSBvZiBhIHNlY3JldA==",
  },
  updateWebhook: {
    delivery_timeout_seconds: 4.5,
    retry_backoff_seconds: 2,
  },
  resendWebhookDeliveries: { since: "2026-01-31T12:00:00Z", statuses: ["failed", "missed"], per_second: 5 },
  rotateWebhookSecret: { secret: "whsec_YSBzZWNyZXQgdGhhdCBpcyBuZXc=", overlap_seconds: 172_800 },
};
