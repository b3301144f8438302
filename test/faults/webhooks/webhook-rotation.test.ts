import t, { type Test } from "tap";
import { verifyWebhook } from "../../../core/webhook/verify-webhook.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { PROGRAM_ID, producerOf } from "../../helpers/webhooks/announcing-cell.js";
import { deliveryPages } from "../../helpers/webhooks/delivery-pages.js";
import { type Receiver, startReceiver } from "../../helpers/webhooks/receiver.js";

const OLD = "the old secret";
const NEW = "the new secret";
/** Far longer than this takes on busy cores. */
const MORE_MS = 120_000;

/** A receiver that takes only what is signed with a secret that it has. */
class SigningReceiver {
  accepts: readonly string[] = [OLD];
  /** Ids of the events that it took. */
  readonly taken = new Set<string>();
  refused = 0;
  #server: Receiver | undefined;

  async start(): Promise<string> {
    this.#server = await startReceiver(({ headers, body }, response) => {
      const isOurs = this.accepts.some((secret) => {
        try {
          return verifyWebhook({ secret, headers, body }).timestampSeconds > 0;
        } catch {
          return false;
        }
      });
      if (isOurs) this.taken.add(String(headers["webhook-id"]));
      else this.refused++;
      response.writeHead(isOurs ? 204 : 401).end();
    });
    return this.#server.url;
  }

  async close(): Promise<void> {
    await this.#server?.close();
  }

  /** Resolves when it has taken so many more events. */
  async more(count: number): Promise<void> {
    const target = this.taken.size + count;
    for (const endMs = performance.now() + MORE_MS; this.taken.size < target; ) {
      if (performance.now() > endMs)
        throw new Error(`it took ${this.taken.size} of ${target}, and refused ${this.refused}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

const EVENTS = ["ProgramStarted" as const, "ProgramCompleted" as const];

/** Checks that all deliveries of the webhook arrived. @returns how many there are */
async function allDelivered(t: Test, client: ContractClient, id: string, { taken }: SigningReceiver): Promise<number> {
  const isSettled = (page: readonly { status: string }[]) => page.every(({ status }) => status !== "pending");
  let deliveries = 0;
  for await (const page of deliveryPages(client, id, 200, isSettled)) {
    deliveries += page.length;
    t.same(
      page.filter(({ status }) => status !== "delivered"),
      [],
    );
    for (const { payload } of page) t.ok(taken.has(String(payload.event_id)));
  }
  return deliveries;
}

t.test("a receiver with the old secret, the new one, or both loses nothing while the secret changes", async (t) => {
  const directory = temporaryDirectory(t);
  let service = await ServiceProcess.start({ args: ["serve"], dataDirectory: directory });
  t.teardown(() => service.dispose());
  let client = new ContractClient(t, service.port);
  const receivers = { old: new SigningReceiver(), new: new SigningReceiver(), both: new SigningReceiver() };
  const all = Object.values(receivers);
  const hooks: string[] = [];
  for (const [name, receiver] of Object.entries(receivers)) {
    const url = await receiver.start();
    t.teardown(() => receiver.close());
    const { id } = await client.post("/webhooks", {
      body: { name, url, secret: OLD, ...{ subscribed_events: EVENTS, retry_backoff_seconds: 0.2 } },
    });
    hooks.push(id);
  }
  const producer = await producerOf(t, service, { reconnectFirstMs: 2, reconnectLongestMs: 20 });
  let isOver = false;
  let runs = 0;
  const working = (async () => {
    while (!isOver) {
      const id = producer.nextRunId();
      await producer.deliver({ type: "run.create", id, program_id: PROGRAM_ID });
      await producer.deliver({ type: "run.start", id });
      await producer.deliver({ type: "run.finish", id });
      runs++;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
  const allMore = (count: number) => Promise.all(all.map((receiver) => receiver.more(count)));
  await allMore(10);
  receivers.both.accepts = [NEW, OLD];
  for (const webhook_id of hooks) {
    await client.post("/webhooks/{webhook_id}/rotate-secret", { path: { webhook_id }, body: { secret: NEW } });
  }
  receivers.new.accepts = [NEW];
  await allMore(20);
  await service.end("SIGKILL");
  service = await ServiceProcess.start({ args: ["serve"], dataDirectory: directory });
  client = new ContractClient(t, service.port);
  const before = all.map(({ refused }) => refused);
  await allMore(20);
  t.same(
    all.map(({ refused }) => refused),
    before,
    "in the overlap, either secret takes every attempt, also after a kill",
  );
  receivers.old.accepts = [NEW];
  for (const webhook_id of hooks)
    await client.patch("/webhooks/{webhook_id}", { path: { webhook_id }, body: { secret: NEW } });
  await allMore(10);
  isOver = true;
  await working;
  await producer.close();
  for (const [nth, id] of hooks.entries()) {
    t.equal(await allDelivered(t, client, id, all[nth]!), 2 * runs, "each event of each run");
  }
  t.comment(
    `${runs} runs to ${hooks.length} receivers; refused attempts, all made up for: ${all.map((one) => one.refused)}`,
  );
});
