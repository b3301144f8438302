import { wallClockUs } from "../../../core/service-clock.js";
import { unknownId } from "../../../core/service-errors.js";
import type { AddressPolicy } from "../../../core/webhook/address-policy.js";
import type { Webhook } from "../../../core/webhook/webhook.js";
import {
  createdWebhook,
  updatedWebhook,
  WEBHOOK_REQUEST_SCHEMAS,
  type WebhookRequestBody,
  webhookRequestFaults,
} from "../../../core/webhook/webhook-request.js";
import { validators } from "../../../core/webhook/webhook-request-validators.js";
import { testResponse, webhookResponse } from "../../../core/webhook/webhook-response.js";
import type { View } from "../../../storage/view/view.js";
import type { WebhookRequest } from "../../../workers/webhooks/webhook-requests.js";
import { checkWriteCondition } from "../../replies/conditional-reply.js";
import { jsonReply } from "../../replies/reply.js";
import { defineRoute, type RequestBodyDeclaration, type Route } from "../../requests/route.js";
import { jsonResponse, WEBHOOK_ID } from "../declared-parameters.js";

export const WEBHOOK_TAG = "webhooks";

/**
 * A write by HTTP: resolves with the id of what was written once it is committed and the view shows it.
 * @param gone aborted when nobody waits for the answer any more
 */
export type WriteWebhook = (request: WebhookRequest, gone?: AbortSignal) => Promise<string>;

/** Which addresses webhooks may be delivered to at a port. */
export type ReceiverPolicy = (port: number) => AddressPolicy;

export function webhookRoutes(view: View, write: WriteWebhook, receiverPolicy: ReceiverPolicy): Route[] {
  return [
    webhookListRoute(view),
    createRoute(view, write, receiverPolicy),
    webhookRoute(view),
    updateRoute(view, write, receiverPolicy),
    deleteRoute(view, write),
    testRoute(view, write),
  ];
}

function webhookListRoute(view: View): Route {
  return defineRoute({
    path: "/webhooks",
    operationId: "listWebhooks",
    tag: WEBHOOK_TAG,
    summary: "Lists the webhooks, oldest first.",
    responses: { 200: jsonResponse("WebhookResponseList", "All webhooks.") },
    handle: () => jsonReply(view.webhooks.list().map((webhook) => answerOf(view, webhook))),
  });
}

function createRoute(view: View, write: WriteWebhook, receiverPolicy: ReceiverPolicy): Route {
  return defineRoute({
    method: "POST",
    path: "/webhooks",
    operationId: "createWebhook",
    tag: WEBHOOK_TAG,
    summary: "Registers a webhook. Sending the same request again registers a second webhook.",
    body: bodyDeclaration(receiverPolicy, "CreateWebhookRequest", "The webhook."),
    responses: { 201: jsonResponse("WebhookResponse", "The webhook.") },
    async handle({ body }) {
      const id = await write({ op: "create", webhook: createdWebhook(body as WebhookRequestBody) });
      return jsonReply(answerOf(view, requireWebhook(view, id)), 201);
    },
  });
}

function webhookRoute(view: View): Route {
  return defineRoute({
    path: "/webhooks/{webhook_id}",
    operationId: "getWebhook",
    tag: WEBHOOK_TAG,
    summary: "One webhook.",
    pathParameters: { webhook_id: WEBHOOK_ID },
    responses: { 200: jsonResponse("WebhookResponse", "The webhook.") },
    handle: ({ params }) => jsonReply(answerOf(view, requireWebhook(view, params.webhook_id as string))),
  });
}

function updateRoute(view: View, write: WriteWebhook, receiverPolicy: ReceiverPolicy): Route {
  return defineRoute({
    method: "PATCH",
    path: "/webhooks/{webhook_id}",
    operationId: "updateWebhook",
    tag: WEBHOOK_TAG,
    summary: "Changes the given fields. Null leaves a field unchanged, except for the secret, which it removes.",
    pathParameters: { webhook_id: WEBHOOK_ID },
    body: bodyDeclaration(
      receiverPolicy,
      "UpdateWebhookRequest",
      "The fields to change. Read-only fields of a webhook are ignored.",
    ),
    responses: { 200: jsonResponse("WebhookResponse", "The changed webhook.") },
    errors: ["precondition_failed"],
    async handle(asked) {
      const { params, body } = asked;
      const webhookId = params.webhook_id as string;
      requireWebhook(view, webhookId);
      checkWriteCondition(asked.header("if-match"));
      await write({ op: "update", webhookId, change: updatedWebhook(body as WebhookRequestBody) });
      return jsonReply(answerOf(view, requireWebhook(view, webhookId)));
    },
  });
}

function deleteRoute(view: View, write: WriteWebhook): Route {
  return defineRoute({
    method: "DELETE",
    path: "/webhooks/{webhook_id}",
    operationId: "deleteWebhook",
    tag: WEBHOOK_TAG,
    summary: "Deletes a webhook; its deliveries stay readable.",
    pathParameters: { webhook_id: WEBHOOK_ID },
    responses: { 204: { description: "The webhook is deleted. Deleting it again gives the same answer." } },
    errors: ["precondition_failed"],
    async handle(asked) {
      const webhookId = asked.params.webhook_id as string;
      // Deleting a deleted webhook succeeds.
      if (view.webhooks.get(webhookId) !== undefined) checkWriteCondition(asked.header("if-match"));
      await write({ op: "delete", webhookId });
      return { status: 204, body: null };
    },
  });
}

function testRoute(view: View, write: WriteWebhook): Route {
  return defineRoute({
    method: "POST",
    path: "/webhooks/{webhook_id}/test",
    operationId: "testWebhook",
    tag: WEBHOOK_TAG,
    summary:
      "Sends a WebhookTest event now, in one attempt, regardless of the webhook's subscriptions and even if it is disabled.",
    pathParameters: { webhook_id: WEBHOOK_ID },
    responses: { 200: jsonResponse("TestWebhookResponse", "The outcome of the attempt.") },
    async handle(asked) {
      const webhookId = asked.params.webhook_id as string;
      const deliveryId = await write({ op: "test", webhookId }, asked.gone());
      const content = await view.delivery(deliveryId);
      if (content === undefined) throw new Error(`delivery ${deliveryId} was recorded, but cannot be read back`);
      return jsonReply(testResponse(content.delivery));
    },
  });
}

export function bodyDeclaration(
  receiverPolicy: ReceiverPolicy,
  name: keyof typeof WEBHOOK_REQUEST_SCHEMAS,
  description: string,
): RequestBodyDeclaration {
  return {
    name,
    description,
    schema: WEBHOOK_REQUEST_SCHEMAS[name],
    validate: validators[name],
    furtherFaults: (body) => webhookRequestFaults(body, receiverPolicy),
  };
}

/** A WebhookResponse as it is now. */
export function answerOf(view: View, webhook: Webhook) {
  const wallUs = wallClockUs();
  const cell = view.webhooks.cellOf(webhook.id);
  const answer = webhookResponse(webhook, view.deliveries.figuresOf(webhook.id, wallUs), wallUs);
  return { ...answer, ...(cell !== undefined && { cell }) };
}

/** @throws ServiceError webhook_not_found */
export function requireWebhook(view: View, id: string): Webhook {
  const webhook = view.webhooks.get(id);
  if (webhook === undefined) throw unknownId("webhook", id);
  return webhook;
}
