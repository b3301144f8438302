import { ServiceError } from "../../core/service-errors.js";
import type { AddressPolicy } from "../../core/webhook/address-policy.js";
import type { Webhook } from "../../core/webhook/webhook.js";
import {
  createdWebhook,
  updatedWebhook,
  WEBHOOK_REQUEST_SCHEMAS,
  type WebhookRequestBody,
  webhookRequestFaults,
} from "../../core/webhook/webhook-request.js";
import { validators } from "../../core/webhook/webhook-request-validators.js";
import { testResponse, webhookResponse } from "../../core/webhook/webhook-response.js";
import type { View } from "../../storage/view/view.js";
import type { WebhookRequest } from "../../workers/webhooks/deliveries/webhook-requests.js";
import { checkWriteCondition } from "../replies/conditional-reply.js";
import { jsonReply } from "../replies/reply.js";
import { defineRoute, type RequestBodyDeclaration, type Route } from "../requests/route.js";
import { jsonResponse, WEBHOOK_ID } from "./declared-parameters.js";

export const WEBHOOK_TAG = "webhooks";

/**
 * Writes by HTTP: resolves when the write is committed and the view has it.
 * @param gone aborted when nobody waits for the answer any more
 */
export type Request = (request: WebhookRequest, gone?: AbortSignal) => Promise<string>;

export function webhookNotFound(id: string): ServiceError {
  return new ServiceError("webhook_not_found", "no webhook has this id", {
    field: "webhook_id",
    in: "path",
    value: id,
  });
}

/** @param receiverPolicy which addresses may be delivered to at a port */
export function webhookRoutes(view: View, request: Request, receiverPolicy: (port: number) => AddressPolicy): Route[] {
  const bodyOf = (name: keyof typeof WEBHOOK_REQUEST_SCHEMAS, description: string): RequestBodyDeclaration => ({
    ...{ name, description, schema: WEBHOOK_REQUEST_SCHEMAS[name], validate: validators[name] },
    furtherFaults: (body) => webhookRequestFaults(body, receiverPolicy),
  });
  const requireWebhook = (id: string): Webhook => {
    const webhook = view.webhook(id);
    if (webhook === undefined) throw webhookNotFound(id);
    return webhook;
  };
  return [
    defineRoute({
      method: "GET",
      path: "/webhooks",
      operationId: "listWebhooks",
      tag: WEBHOOK_TAG,
      summary: "Lists the webhooks, oldest first.",
      pathParameters: {},
      query: {},
      responses: { 200: jsonResponse("WebhookResponseList", "All webhooks.") },
      errors: [],
      scope: "read",
      handle: () => jsonReply(view.listWebhooks().map(webhookResponse)),
    }),
    defineRoute({
      method: "POST",
      path: "/webhooks",
      operationId: "createWebhook",
      tag: WEBHOOK_TAG,
      summary: "Registers a webhook. Not idempotent: the same request again registers a second one.",
      pathParameters: {},
      query: {},
      body: bodyOf("CreateWebhookRequest", "The webhook."),
      responses: { 201: jsonResponse("WebhookResponse", "The webhook.") },
      errors: [],
      scope: "manage",
      async handle({ body }) {
        const id = await request({ op: "create", webhook: createdWebhook(body as WebhookRequestBody) });
        return jsonReply(webhookResponse(requireWebhook(id)), 201);
      },
    }),
    defineRoute({
      method: "GET",
      path: "/webhooks/{webhook_id}",
      operationId: "getWebhook",
      tag: WEBHOOK_TAG,
      summary: "One webhook.",
      pathParameters: { webhook_id: WEBHOOK_ID },
      query: {},
      responses: { 200: jsonResponse("WebhookResponse", "The webhook.") },
      errors: [],
      scope: "read",
      handle: ({ params }) => jsonReply(webhookResponse(requireWebhook(params.webhook_id as string))),
    }),
    defineRoute({
      method: "PATCH",
      path: "/webhooks/{webhook_id}",
      operationId: "updateWebhook",
      tag: WEBHOOK_TAG,
      summary:
        "Changes the fields that are given; null leaves a field unchanged, but for the secret, which it removes.",
      pathParameters: { webhook_id: WEBHOOK_ID },
      query: {},
      body: bodyOf(
        "UpdateWebhookRequest",
        "What is to change; the fields of the answer that cannot change are ignored.",
      ),
      responses: { 200: jsonResponse("WebhookResponse", "The webhook as it is now.") },
      errors: ["precondition_failed"],
      scope: "manage",
      async handle(asked) {
        const { params, body } = asked;
        const webhookId = params.webhook_id as string;
        requireWebhook(webhookId);
        checkWriteCondition(asked.header("if-match"));
        await request({ op: "update", webhookId, change: updatedWebhook(body as WebhookRequestBody) });
        return jsonReply(webhookResponse(requireWebhook(webhookId)));
      },
    }),
    defineRoute({
      method: "DELETE",
      path: "/webhooks/{webhook_id}",
      operationId: "deleteWebhook",
      tag: WEBHOOK_TAG,
      summary: "Deletes a webhook; its deliveries stay readable.",
      pathParameters: { webhook_id: WEBHOOK_ID },
      query: {},
      responses: { 204: { description: "It is deleted, now or before." } },
      errors: ["precondition_failed"],
      scope: "manage",
      async handle(asked) {
        const webhookId = asked.params.webhook_id as string;
        // A second time is as good as the first.
        if (view.webhook(webhookId) !== undefined) checkWriteCondition(asked.header("if-match"));
        await request({ op: "delete", webhookId });
        return { status: 204, body: null };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/webhooks/{webhook_id}/test",
      operationId: "testWebhook",
      tag: WEBHOOK_TAG,
      summary:
        "Sends a WebhookTest event now, in one attempt, whatever the webhook subscribes to and whether it is enabled.",
      pathParameters: { webhook_id: WEBHOOK_ID },
      query: {},
      responses: { 200: jsonResponse("TestWebhookResponse", "What became of the attempt.") },
      errors: [],
      scope: "manage",
      async handle(asked) {
        const webhookId = asked.params.webhook_id as string;
        const deliveryId = await request({ op: "test", webhookId }, asked.gone());
        const content = await view.delivery(deliveryId);
        if (content === undefined) throw new Error(`the view lacks delivery ${deliveryId}, which was just made`);
        return jsonReply(testResponse(content.delivery));
      },
    }),
  ];
}
