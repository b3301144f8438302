import { writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { listOf } from "../../helpers/list-of.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { until } from "../../helpers/until.js";
import { subscribe } from "../../helpers/webhooks/announcing-cell.js";
import { receiverFor } from "../../helpers/webhooks/receiver.js";

const PROGRAM_ID = "019b76da-a800-7000-8000-000000000001";
const RUN_ID = "019bb000-0000-7000-8000-000000000001";
const PRELOAD = new URL("../../helpers/webhooks/ended-dispatcher.js", import.meta.url).href;

t.test(
  "the dispatcher thread alone ends in a pause: none is shown any more, and the next start delivers",
  async (t) => {
    let status = 500;
    const receiver = await receiverFor(t, (_, response) => response.writeHead(status).end());
    const file = join(t.testdir(), "end");
    const first = await ServiceProcess.startFor(t, {
      environment: { NODE_OPTIONS: `--import ${PRELOAD}`, TEST_END_DISPATCHER: file },
    });
    const client = new ContractClient(t, first.port);
    const settings = { max_retries: 1, retry_backoff_seconds: 9 };
    const { id: hookId } = await subscribe(client, receiver.url, ["ProgramFailed"], { ...settings });
    const producer = await RawProducer.connect({ path: first.cellSocketPath }, "controller");
    t.teardown(() => producer.socket.destroy());
    const program = { id: PROGRAM_ID, name: "Disc", status: "active", steps: [{ type: "wait" }] };
    await producer.accept({ type: "program.put", program });
    await producer.accept({ type: "run.create", id: RUN_ID, program_id: PROGRAM_ID });
    await producer.accept({ type: "run.fail", id: RUN_ID, error_message: "collision" });
    const hook = { path: { webhook_id: hookId } };
    const isPaused = ([one]: { next_retry_at: string | null }[]) => one !== undefined && one.next_retry_at !== null;
    const [paused] = await client.until("/webhooks/{webhook_id}/deliveries", isPaused, hook);
    const delivery = { path: { delivery_id: paused?.id as string } };

    writeFileSync(file, "");
    await until("the dispatcher is down", async () => (await client.answer("get", "/health")).status === 503);
    t.match((await client.answer("get", "/health")).error, {
      components: { dispatcher: { status: "down", detail: /^since \d{4}-.*Z: .*ended by the test/ } },
    });
    const pending = { status: "pending", attempts: 1, next_retry_at: null };
    t.match(await client.get("/webhooks/{webhook_id}/deliveries", hook), listOf(pending));
    t.match(await client.get("/webhook-deliveries/{delivery_id}", delivery), pending);
    await client.refusal("post", "/webhook-deliveries/{delivery_id}/retry", 503, "unavailable", delivery);
    await first.end();

    status = 204;
    const second = await ServiceProcess.startFor(t, { dataDirectory: first.dataDirectory });
    const again = new ContractClient(t, second.port);
    const done = await again.until(
      "/webhook-deliveries/{delivery_id}",
      ({ status }) => status === "delivered",
      delivery,
    );
    t.match(done, { attempts: 2, next_retry_at: null });
    t.equal(receiver.requests.length, 2);
  },
);
