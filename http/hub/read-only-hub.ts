/** A hub does not write. */
import { ServiceError } from "../../core/service-errors.js";
import type { View } from "../../storage/view/view.js";
import type { WebhookRequest } from "../../workers/webhooks/webhook-requests.js";
import type { Route } from "../requests/route.js";

/** The routes of a hub: every one that writes answers `read_only_hub`. */
export function readOnlyRoutes(view: View, routes: readonly Route[]): Route[] {
  return routes.map((route) => {
    if (route.scope !== "manage") return route;
    return {
      ...route,
      handle({ params }) {
        const { webhook_id, delivery_id } = params as Record<string, string | undefined>;
        const ofDelivery = delivery_id === undefined ? undefined : view.deliveries.row(delivery_id)?.webhookId;
        throw readOnly(view, webhook_id ?? ofDelivery);
      },
    };
  });
}

/** Some routes that only read ask the recorder, which a hub does not have. @throws ServiceError `read_only_hub`, always */
export async function refuseRequest(view: View, request: WebhookRequest): Promise<never> {
  throw readOnly(view, "webhookId" in request ? request.webhookId : undefined);
}

function readOnly(view: View, webhookId: string | undefined): ServiceError {
  const cell = webhookId === undefined ? undefined : view.webhooks.cellOf(webhookId);
  const where = cell === undefined ? "the cell that has it, or is to have it" : `the cell ${cell}`;
  return new ServiceError("read_only_hub", `this is a hub, which only reads: send this to ${where}`, {
    cell: cell ?? null,
  });
}
