/** Deliveries that fail, of all webhooks. */
import { type Delivery, getJson, type Webhook } from "./api.js";
import { useReloadOnChange } from "./reload-on-change.js";
import { useReloadWhileSeen } from "./reload-while-seen.js";
import { type Resource, useResource } from "./resource.js";

export interface FailingWebhook {
  webhook: Webhook;
  /** How many of the latest `looked` deliveries failed. */
  failed: number;
  looked: number;
  latest: Delivery;
}

const LOOKED_AT = 50;

/** The webhooks with failures among their latest deliveries. */
export function useFailing(): Resource<FailingWebhook[]> {
  const failing = useResource<FailingWebhook[]>("failing deliveries", readFailing);
  useReloadOnChange(failing, ({ completed_at: at }) => at !== null && at !== undefined);
  // A delivery fails seconds after its run has ended, and nothing tells of it.
  useReloadWhileSeen(failing);
  return failing;
}

async function readFailing(signal?: AbortSignal): Promise<FailingWebhook[]> {
  const webhooks = await getJson<Webhook[]>("/webhooks", signal);
  const read = webhooks.map(async (webhook): Promise<FailingWebhook[]> => {
    const deliveries = await getJson<Delivery[]>(`/webhooks/${webhook.id}/deliveries?limit=${LOOKED_AT}`, signal);
    const failed = deliveries.filter(({ status }) => status === "failed" || status === "exhausted");
    const [latest] = failed;
    return latest === undefined ? [] : [{ webhook, failed: failed.length, looked: deliveries.length, latest }];
  });
  return (await Promise.all(read)).flat();
}
