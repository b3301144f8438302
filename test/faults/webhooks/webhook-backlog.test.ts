import t from "tap";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { sized } from "../../helpers/test-size.js";
import { PROGRAM_ID, producerOf } from "../../helpers/webhooks/announcing-cell.js";
import { deliveryPages } from "../../helpers/webhooks/delivery-pages.js";
import { receiverFor } from "../../helpers/webhooks/receiver.js";

const WEBHOOKS = 20;
const EVENTS = sized(50, 500);

t.test(
  "many deliveries pending at a start: all go out, while requests are answered and pages of the past hold still",
  async (t) => {
    const directory = temporaryDirectory(t);
    const first = await ServiceProcess.startFor(t, { args: ["serve"], dataDirectory: directory });
    let isHolding = true;
    const receiver = await receiverFor(t, (_, response) => {
      if (!isHolding) response.writeHead(204).end();
    });
    const client = new ContractClient(t, first.port);
    const ids: string[] = [];
    for (let nth = 0; nth < WEBHOOKS; nth++) {
      const [name, url] = [`w${nth}`, `${receiver.url}/${nth}`];
      const hook = await client.post("/webhooks", {
        body: { name, url, subscribed_events: ["ProgramFailed"], delivery_timeout_seconds: 9 },
      });
      ids.push(hook.id);
    }
    const producer = await producerOf(t, first);
    const produce = async (count: number): Promise<void> => {
      for (let nth = 0; nth < count; nth++) {
        const id = producer.nextRunId();
        await producer.send({ type: "run.create", id, program_id: PROGRAM_ID });
        await (await producer.send({ type: "run.fail", id, error_message: "collision" })).acknowledged;
      }
    };
    await produce(EVENTS);
    await first.end("SIGKILL");

    isHolding = false;
    receiver.requests.length = 0;
    const startMs = performance.now();
    const second = await ServiceProcess.startFor(t, { args: ["serve"], dataDirectory: directory });
    const startedMs = performance.now() - startMs;
    const after = new ContractClient(t, second.port);
    await after.get("/health");
    // Reads pages of the past while deliveries end and new ones begin. Each delivery that was there comes once.
    const producing = produce(20);
    const listed: { id: string; created_at: string; status: string }[] = [];
    for await (const page of deliveryPages(after, ids[0] as string, 7)) listed.push(...page);
    await producing;
    t.equal(new Set(listed.map(({ id }) => id)).size, listed.length, "none twice");
    t.ok(listed.length >= EVENTS, "none left out");
    const times = listed.map(({ created_at }) => created_at);
    t.same(times, [...times].sort().reverse());
    const all = WEBHOOKS * (EVENTS + 20);
    await receiver.received(all);
    const seconds = (performance.now() - startMs) / 1000;
    for (const id of ids) {
      await after.until(
        "/webhooks/{webhook_id}/deliveries",
        (json) => json.every((one: { status: string }) => one.status === "delivered"),
        { path: { webhook_id: id }, query: { limit: 200 } },
      );
    }
    const distinct = new Set(receiver.requests.map(({ path, headers }) => `${path} ${headers["webhook-id"]}`));
    t.equal(receiver.requests.length, all);
    t.equal(distinct.size, all, "each once: the first start's attempts had no answer");
    t.comment(
      `${WEBHOOKS * EVENTS} pending at the start, which took ${startedMs.toFixed(0)} ms; all ${all} delivered after ${seconds.toFixed(1)} s`,
    );
    await producer.close();
    t.match(await second.end(), { code: 0 });
  },
);
