import { writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { RawProducer } from "../helpers/raw-producer.js";
import { startReceiver } from "../helpers/receiver.js";
import { ServiceProcess } from "../helpers/service-process.js";
import { WebhookClient } from "../helpers/webhook-client.js";

const PROGRAM_ID = "019b76da-a800-7000-8000-000000000001";
const RUN_ID = "019bb000-0000-7000-8000-000000000001";
const PRELOAD = new URL("../helpers/ended-dispatcher.js", import.meta.url).href;

t.test(
  "the dispatcher thread alone ends in a pause: none is shown any more, and the next start delivers",
  async (t) => {
    let status = 500;
    const receiver = await startReceiver((_, response) => response.writeHead(status).end());
    t.teardown(() => receiver.close());
    const file = join(t.testdir(), "end");
    const first = await ServiceProcess.start({
      environment: { NODE_OPTIONS: `--import ${PRELOAD}`, TEST_END_DISPATCHER: file },
    });
    t.teardown(() => first.dispose());
    const client = new WebhookClient(t, first.port);
    const settings = { subscribed_events: ["ProgramFailed"], max_retries: 1, retry_backoff_seconds: 9 };
    const hook = { name: "mes", url: receiver.url, ...settings };
    const { id: hookId } = await client.expect("POST", "/webhooks", 201, "WebhookResponse", hook);
    const producer = await RawProducer.connect({ path: first.cellSocketPath }, "controller");
    t.teardown(() => producer.socket.destroy());
    const program = { id: PROGRAM_ID, name: "Disc", status: "active", steps: [{ type: "wait" }] };
    await producer.accept({ type: "program.put", program });
    await producer.accept({ type: "run.create", id: RUN_ID, program_id: PROGRAM_ID });
    await producer.accept({ type: "run.fail", id: RUN_ID, error_message: "collision" });
    const isPaused = ([one]: { next_retry_at: string | null }[]) => one !== undefined && one.next_retry_at !== null;
    const [{ id }] = await client.until(`/webhooks/${hookId}/deliveries`, isPaused);

    writeFileSync(file, "");
    const { components } = await client.until("/health", (json) => json.components.dispatcher.status === "down");
    t.match(components.dispatcher.detail, /ended by the test/);
    const pending = { status: "pending", attempts: 1, next_retry_at: null };
    t.match((await client.send("GET", `/webhooks/${hookId}/deliveries`)).json, [pending]);
    t.match((await client.send("GET", `/webhook-deliveries/${id}`)).json, pending);
    t.equal((await client.send("POST", `/webhook-deliveries/${id}/retry`)).status, 503);
    await first.end();

    status = 204;
    const second = await ServiceProcess.start({ dataDirectory: first.dataDirectory });
    t.teardown(() => second.dispose());
    const again = new WebhookClient(t, second.port);
    const done = await again.until(`/webhook-deliveries/${id}`, (json) => json.status === "delivered");
    t.match(done, { attempts: 2, next_retry_at: null });
    t.equal(receiver.requests.length, 2);
  },
);
