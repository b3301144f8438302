import type { BenchmarkContext } from "../../harness/benchmark.js";
import { getJson } from "../http/http-load.js";
import { type ServiceProcess, startService } from "../http/service-process.js";
import { untilIdle } from "../process-cpu.js";
import { fillService, produceRun, waitUntil } from "../run-producer.js";
import { type DeliveryReceivers, startDeliveryReceivers } from "./delivery-receivers.js";

const WEBHOOKS = { smoke: 3, full: 200 };
const STEPS = 4;

/** The service with webhooks for ProgramCompleted, all signed, each with a receiver of its own. */
export interface WebhookScene {
  readonly service: ServiceProcess;
  readonly receivers: DeliveryReceivers;
  readonly webhooks: number;
  /** The body of the request that an event is posted with. */
  readonly body: string;
  /** Ids of the runs that the store was filled with. */
  readonly runIds: readonly string[];
  /** Sends runs that end completed. Each is an event for every webhook. It does not wait for the deliveries. */
  produce(events: number): Promise<void>;
  /** Waits until all deliveries are recorded and the service is idle. Work that it has put off belongs to what was measured. */
  settled(): Promise<void>;
}

/** @param runs how many the store gets before anybody subscribes */
export async function openWebhookScene(context: BenchmarkContext, runs: number): Promise<WebhookScene> {
  const webhooks = WEBHOOKS[context.size];
  const receivers = await startDeliveryReceivers(context, webhooks);
  const service = await startService(context);
  const filled = await fillService(service, context.seed, { steps: STEPS, count: runs });
  const { client, random, program, ids: runIds } = filled;
  const ids = await subscribe(service.url, receivers.urls);
  const produce = async (events: number): Promise<void> => {
    for (let i = 0; i < events; i++) {
      const serialNumber = `SN-${random.integer(0, 1e9)}`;
      await produceRun(client, random, { program, serialNumber, steps: STEPS, events: 0, checks: 4 });
    }
  };
  // The first event shows the bytes that events are posted with.
  const before = await receivers.figures();
  await produce(1);
  await receivers.received(before, 1);
  const body = await recorded(service.url, ids);
  await untilIdle(service.pid);
  const settled = async (): Promise<void> => {
    await recorded(service.url, ids);
    service.assertNothingRefused();
    await untilIdle(service.pid);
  };
  return { service, receivers, webhooks, body, runIds, produce, settled };
}

/** Registers a webhook for each address; gives their ids. */
async function subscribe(base: string, urls: readonly string[]): Promise<string[]> {
  const ids: string[] = [];
  for (const [nth, url] of urls.entries()) {
    const response = await fetch(`${base}/webhooks`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ name: `w${nth}`, url, subscribed_events: ["ProgramCompleted"], secret: `secret ${nth}` }),
    });
    if (response.status !== 201) throw new Error(`POST /webhooks answered ${response.status}`);
    ids.push(((await response.json()) as { id: string }).id);
  }
  return ids;
}

/** Waits until the newest deliveries of every webhook are recorded; gives the bytes that the last event was posted with. */
async function recorded(base: string, webhookIds: readonly string[]): Promise<string> {
  let body = "";
  for (const id of webhookIds) {
    await waitUntil("the record of every delivery", async () => {
      const deliveries = await getJson<{ status: string; payload: unknown }[]>(
        `${base}/webhooks/${id}/deliveries?limit=8`,
      );
      if (deliveries.some(({ status }) => status !== "delivered" && status !== "pending")) {
        throw new Error(`a delivery failed: ${JSON.stringify(deliveries)}`);
      }
      // These are the posted bytes: JSON that is parsed and written again is the same, because no number in it has two forms.
      body = JSON.stringify(deliveries[0]?.payload);
      // There is none yet: readers do not see at once what the receivers were sent.
      return deliveries.length > 0 && deliveries.every(({ status }) => status === "delivered");
    });
  }
  return body;
}
