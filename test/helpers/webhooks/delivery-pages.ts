import type { components } from "../../../http/client/interface-types.js";
import type { ContractClient } from "../http/contract-client.js";

export type DeliveryPage = components["schemas"]["WebhookDeliveryResponse"][];

/**
 * The deliveries of a webhook in pages, the newest first, each asked for when its reader comes to it.
 * @param isWanted asks again for a page until it is so
 */
export async function* deliveryPages(
  client: ContractClient,
  webhookId: string,
  limit: number,
  isWanted: (page: DeliveryPage) => boolean = () => true,
): AsyncGenerator<DeliveryPage> {
  for (let query: { limit: number; before?: string } = { limit }; ; ) {
    const path = { webhook_id: webhookId };
    const page = await client.until("/webhooks/{webhook_id}/deliveries", isWanted, { path, query });
    const oldest = page.at(-1);
    if (oldest === undefined) return;
    yield page;
    query = { limit, before: oldest.created_at };
  }
}
