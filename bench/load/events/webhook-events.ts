import type { Random } from "../../../core/random.js";
import type { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { getBody } from "../http/http-load.js";
import { type ProducedProgram, produceRun, waitUntil } from "../run-producer.js";

/** Registers a webhook for each address, all for ProgramCompleted and signed; gives their ids. */
export async function subscribe(base: string, urls: readonly string[]): Promise<string[]> {
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

/** Runs that end completed, each an event; without waiting for what becomes of it. */
export async function produceEvents(
  client: ProducerClient,
  random: Random,
  program: ProducedProgram,
  count: number,
): Promise<void> {
  for (let i = 0; i < count; i++) {
    const serialNumber = `SN-${random.integer(0, 1e9)}`;
    await produceRun(client, random, { program, serialNumber, outcome: "completed", steps: 4, events: 0, checks: 4 });
  }
}

/** Waits until the outcome of the newest delivery of every webhook is recorded; gives the bytes that the last event was posted as. */
export async function settled(base: string, webhookIds: readonly string[]): Promise<string> {
  let body = "";
  for (const id of webhookIds) {
    await waitUntil("the record of every delivery", async () => {
      const page = (await getBody(`${base}/webhooks/${id}/deliveries?limit=8`)).toString();
      const deliveries = JSON.parse(page) as { status: string; payload: unknown }[];
      if (deliveries.some(({ status }) => status !== "delivered" && status !== "pending")) {
        throw new Error(`a delivery failed: ${page}`);
      }
      // As it is posted, which JSON that was parsed and written again is too: no number in it has two forms.
      body = JSON.stringify(deliveries[0]?.payload);
      // None at all: readers do not see yet what the receivers were sent.
      return deliveries.length > 0 && deliveries.every(({ status }) => status === "delivered");
    });
  }
  return body;
}

/** A payload that says it is of now: what it was late by, a receiver tells. */
export function stampedNow(payload: string): string {
  const now = new Date().toISOString().replace("Z", "000Z");
  return payload.replace(/"timestamp":"[^"]+"/, `"timestamp":"${now}"`);
}
