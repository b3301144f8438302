import { ServiceError } from "../../core/service-errors.js";
import type { View } from "../../storage/view/view.js";
import type { WebhookRequest } from "../../workers/webhooks/webhook-requests.js";

/** A hub only reads: webhooks and their deliveries are the business of the cell that has them. @throws ServiceError `read_only_hub`, always */
export async function refuseWrite(view: View, request: WebhookRequest): Promise<never> {
  const cell = "webhookId" in request ? view.webhooks.cellOf(request.webhookId) : undefined;
  const where = cell === undefined ? "the cell that is to have it" : `the cell ${cell}`;
  throw new ServiceError("read_only_hub", `this is a hub, which only reads: send this to ${where}`, {
    cell: cell ?? null,
  });
}

/** The plant does not have this run's bytes. Its cell may have them. */
export function notShipped(view: View, runId: string): ServiceError {
  const cell = view.runHead(runId)?.cell ?? null;
  return new ServiceError("not_shipped", `the plant does not have the captures of this run: ask the cell ${cell}`, {
    cell,
  });
}
