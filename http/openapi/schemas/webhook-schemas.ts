import {
  constant,
  count,
  flag,
  freeForm,
  integer,
  list,
  nullable,
  object,
  oneOf,
  ordinal,
  text,
  time,
  uuid,
} from "../../../core/json/described-schema.js";
import { LIMITS } from "../../../core/limits.js";
import { DELIVERY_STATUS_MEANINGS } from "../../../core/webhook/delivery.js";
import { RESEND_STATE_MEANINGS } from "../../../core/webhook/resend.js";
import { EVENT_MEANINGS, ON_FAILURE_MODE_MEANINGS } from "../../../core/webhook/webhook.js";
import { WEBHOOK_SETTINGS } from "../../../core/webhook/webhook-request.js";
import { listOf } from "./component-reference.js";

const DELIVERY_ID = uuid("Id of the delivery.");
const NO_ANSWER = "when no answer came";
const NO_ERROR = "when the receiver accepted the event";

/** Fields of a delivery in the list of a run and in that of a webhook. */
const DELIVERY_SUMMARY = {
  id: DELIVERY_ID,
  webhook_id: uuid("The webhook that the event is posted to."),
  event_name: oneOf(EVENT_MEANINGS, "Which event it is."),
  status: oneOf(DELIVERY_STATUS_MEANINGS, "State of the delivery."),
  on_failure_mode: oneOf(
    ON_FAILURE_MODE_MEANINGS,
    "What a failure leads to: the webhook's setting when the event was emitted.",
  ),
  attempts: count("Number of attempts so far, including manual retries."),
};

const LAST_ERROR = nullable(
  text("Why the latest attempt failed, for people."),
  "before an attempt failed, and once one succeeded",
);

const DELIVERY = {
  ...DELIVERY_SUMMARY,
  program_run_id: nullable(uuid("The run that the event is about."), "for WebhookTest"),
  last_status_code: nullable(
    integer("HTTP status of the receiver's latest answer."),
    "when the latest attempt got none",
  ),
  last_error: LAST_ERROR,
  next_retry_at: nullable(time("When the next attempt begins."), "except while it waits for the next attempt"),
  delivered_at: nullable(time("When the receiver accepted the event."), "until then"),
  payload: freeForm("The body that is posted, the same in every attempt: an event, as described under Webhooks."),
  created_at: time(
    "When the delivery was recorded. No two deliveries of a webhook have the same time. Use it as the mark for `before`.",
  ),
  updated_at: time("When the delivery last changed."),
};

export const WEBHOOK_SCHEMAS = {
  WebhookDeliveryRollup: object(
    {
      delivered: count("Deliveries that the receivers accepted."),
      failed: count("Deliveries that failed."),
      pending: count("Deliveries that are under way."),
      all_ok: flag("True if no delivery has failed and none is pending; also if there are none."),
    },
    {},
    "Outcome of the deliveries of a run's events, counted.",
  ),
  WebhookDeliverySummary: object(
    { ...DELIVERY_SUMMARY, webhook_name: text("The current name of the webhook, or its last one if it was deleted.") },
    { last_error: LAST_ERROR },
    "One delivery of a run's event.",
  ),
  WebhookResponse: object(
    {
      id: uuid("Id of the webhook."),
      ...WEBHOOK_SETTINGS,
      has_secret: flag("Whether deliveries are signed with a secret. The secret itself is never shown."),
      previous_secret_expires_at: nullable(
        time("Until then, deliveries are signed with the secret before the present one too."),
        "unless two secrets overlap",
      ),
      header_names: list(text("Name of a header."), "Names of the custom headers. Their values are never shown."),
      deliveries_24h: {
        ...object({
          delivered: count("Those that the receiver has accepted."),
          failed: count("Those that have failed."),
        }),
        description: "Deliveries that were created in the last 24 hours, counted by what they are now.",
      },
      last_success_at: nullable(time("When the receiver last accepted a delivery."), "if it never did"),
      last_failure_at: nullable(time("When a delivery last failed."), "if none ever did"),
      last_error: nullable(text("Why the delivery failed that failed last, for people."), "if none ever did"),
      created_at: time("When the webhook was registered."),
      updated_at: time("When its settings last changed."),
    },
    { cell: text("Name of the cell that has the webhook. Only a hub says it.") },
    "A receiver of events.",
  ),
  ResendResponse: object(
    {
      resend_id: uuid("Id of the resend."),
      deliveries: ordinal("How many deliveries it has chosen."),
    },
    {},
    "A resend that has begun.",
  ),
  ResendStateResponse: object(
    {
      deliveries: ordinal("How many deliveries it has chosen."),
      attempted: count("How many of them had their attempt."),
      delivered: count("How many of these the receiver has accepted, by the latest attempt of each."),
      failed: count("How many failed; also those whose stored data cannot be read, without an attempt."),
      state: oneOf(RESEND_STATE_MEANINGS, "Where it stands."),
    },
    {},
    "What came of a resend.",
  ),
  SigningKeyResponse: object(
    {
      algorithm: constant("ed25519", "The algorithm of the key (RFC 8032)."),
      public_key: text("The key as Standard Webhooks writes it: `whpk_`, then the base64 of its 32 bytes."),
      public_key_pem: text("The same key in PEM (SPKI, RFC 8410), for OpenSSL and most libraries."),
    },
    {},
    "The public key of the service.",
  ),
  WebhookResponseList: listOf("WebhookResponse", "All webhooks, oldest first."),
  WebhookDeliveryResponse: object(DELIVERY, {}, "One delivery of an event to a webhook."),
  WebhookDeliveryResponseList: listOf("WebhookDeliveryResponse", "Deliveries to a webhook, newest first."),
  WebhookDeliveryAttemptResponse: object(
    {
      attempt_number: ordinal("Number of the attempt, counted from 1, including manual retries."),
      started_at: time("When the attempt began."),
      completed_at: nullable(time("When it ended.")),
      status_code: nullable(integer("HTTP status of the receiver's answer."), NO_ANSWER),
      response_body: nullable(
        text(`Body of the receiver's answer, as text; the first ${LIMITS.answerBodyBytes} bytes at most.`),
        NO_ANSWER,
      ),
      response_headers: nullable(
        {
          type: "object",
          additionalProperties: { type: "string" },
          description: `Headers of the receiver's answer, names in lower case; ${LIMITS.answerHeaderBytes} bytes at most.`,
        },
        NO_ANSWER,
      ),
      response_truncated: flag(
        "Whether body or headers were longer than what is kept, or the body was cut off. False if no answer came.",
      ),
      error: nullable(text("Why the attempt failed, for people."), NO_ERROR),
    },
    {},
    "One attempt of a delivery.",
  ),
  WebhookDeliveryDetailResponse: object(
    {
      ...DELIVERY,
      attempt_history: listOf(
        "WebhookDeliveryAttemptResponse",
        `The latest ${LIMITS.attemptsPerDelivery} attempts, newest first.`,
      ),
    },
    {},
    "One delivery with its attempts.",
  ),
  TestWebhookResponse: object(
    {
      delivered: flag("Whether the receiver accepted the test event."),
      status_code: nullable(integer("HTTP status of the answer."), NO_ANSWER),
      error: nullable(text("Why the receiver did not accept it, for people."), NO_ERROR),
      delivery_id: uuid("Id of the test's delivery, which stays readable."),
    },
    {},
    "Outcome of a test.",
  ),
};
