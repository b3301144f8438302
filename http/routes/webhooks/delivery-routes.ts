import { oneOf } from "../../../core/json/described-schema.js";
import { LIMITS } from "../../../core/limits.js";
import { unknownId } from "../../../core/service-errors.js";
import { DELIVERY_STATUS_MEANINGS, DELIVERY_STATUSES } from "../../../core/webhook/delivery.js";
import { EVENT_MEANINGS, EVENT_NAMES } from "../../../core/webhook/webhook.js";
import type { View } from "../../../storage/view/view.js";
import type { DeliveryDocuments } from "../../documents/delivery-documents.js";
import { defineRoute, type Route } from "../../requests/route.js";
import { DELIVERY_ID, jsonResponse, limitParameter, oneOfClosed, WEBHOOK_ID } from "../declared-parameters.js";
import { WEBHOOK_TAG, type WriteWebhook } from "./webhook-routes.js";

export function deliveryRoutes(view: View, documents: DeliveryDocuments, write: WriteWebhook): Route[] {
  return [deliveryListRoute(view, documents), deliveryRoute(documents), retryRoute(view, documents, write)];
}

function deliveryListRoute(view: View, documents: DeliveryDocuments): Route {
  return defineRoute({
    path: "/webhooks/{webhook_id}/deliveries",
    operationId: "listWebhookDeliveries",
    tag: WEBHOOK_TAG,
    summary: "Lists the deliveries to a webhook, newest first. Also works for a deleted webhook.",
    description:
      "Deliveries include their payloads. A page has at most 32 MiB: it may have fewer items than its limit, but at least one. " +
      "After the oldest delivery, the page is empty.",
    pathParameters: { webhook_id: WEBHOOK_ID },
    query: {
      limit: limitParameter(LIMITS.deliveriesPage),
      before: {
        type: "string",
        format: "date-time",
        description:
          "Only deliveries created before this time. For the next page, pass the oldest created_at of this page.",
        isUpperBound: true,
      },
      status: oneOf(DELIVERY_STATUS_MEANINGS, "Only deliveries that are in this state."),
      event_name: oneOf(EVENT_MEANINGS, "Only deliveries of this event."),
    },
    responses: { 200: jsonResponse("WebhookDeliveryResponseList", "The page.") },
    handle(asked) {
      const { params, query } = asked;
      const id = params.webhook_id as string;
      if (!view.webhooks.everExisted(id)) throw unknownId("webhook", id);
      const filter = {
        beforeUs: query.before,
        status: oneOfClosed("status", query.status, DELIVERY_STATUSES),
        eventName: oneOfClosed("event_name", query.event_name, EVENT_NAMES),
      };
      return documents.page(id, filter, query.limit, asked);
    },
  });
}

function deliveryRoute(documents: DeliveryDocuments): Route {
  return defineRoute({
    path: "/webhook-deliveries/{delivery_id}",
    operationId: "getWebhookDelivery",
    tag: WEBHOOK_TAG,
    summary: "One delivery with its attempts, newest first.",
    pathParameters: { delivery_id: DELIVERY_ID },
    responses: { 200: jsonResponse("WebhookDeliveryDetailResponse", "The delivery.") },
    handle: (asked) => documents.detail(asked.params.delivery_id as string, asked),
  });
}

function retryRoute(view: View, documents: DeliveryDocuments, write: WriteWebhook): Route {
  return defineRoute({
    method: "POST",
    path: "/webhook-deliveries/{delivery_id}/retry",
    operationId: "retryWebhookDelivery",
    tag: WEBHOOK_TAG,
    summary: "Makes one attempt now, with the same event. A delivery that succeeded before is returned unchanged.",
    pathParameters: { delivery_id: DELIVERY_ID },
    responses: { 200: jsonResponse("WebhookDeliveryDetailResponse", "The delivery after the attempt.") },
    errors: ["webhook_deleted"],
    async handle(asked) {
      const deliveryId = asked.params.delivery_id as string;
      const row = view.deliveries.row(deliveryId);
      if (row === undefined) throw unknownId("delivery", deliveryId);
      // A delivered delivery never changes again.
      if (row.status === "delivered") return documents.detail(deliveryId, asked);
      await write({ op: "retry", deliveryId, webhookId: row.webhookId }, asked.gone());
      return documents.read(deliveryId);
    },
  });
}
