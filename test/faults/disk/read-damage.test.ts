import { closeSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { listOf } from "../../helpers/list-of.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { receiverFor } from "../../helpers/webhooks/receiver.js";

const RUNS = 5;
const DAMAGED = 2;

t.test("a record that rots under the running service costs its run's detail, not the lists it stands in", async (t) => {
  const first = await ServiceProcess.startFor(t);
  const producer = new ProducerClient({ address: { path: first.cellSocketPath }, producer: "cell" });
  await producer.deliver(programPut());
  const ids: string[] = [];
  for (let i = 0; i < RUNS; i++) {
    const id = producer.nextRunId();
    ids.push(id);
    await producer.deliver({
      type: "run.create",
      id,
      program_id: PROGRAM_ID,
      serial_number: `SN${i}`,
      metadata: { mark: `M${i}M` },
    });
    await producer.deliver({ type: "run.cancel", id });
  }
  await producer.close();
  t.match(await first.end(), { code: 0 });

  // Opened before the damage, and with nothing cached.
  const service = await ServiceProcess.startFor(t, { dataDirectory: first.dataDirectory });
  const [segment] = readdirSync(join(first.dataDirectory, "meta")) as [string];
  const path = join(first.dataDirectory, "meta", segment);
  const at = readFileSync(path).lastIndexOf(`M${DAMAGED}M`);
  const file = openSync(path, "r+");
  writeSync(file, "X", at);
  closeSync(file);

  const get = async (url: string) => {
    const response = await fetch(`http://127.0.0.1:${service.port}${url}`);
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  for (const round of ["read", "read again"]) {
    const list = await get("/runs");
    t.equal(list.status, 200, round);
    const runs = (list.body.runs as Record<string, unknown>[]).reverse();
    t.strictSame(
      runs.map(({ id }) => id),
      ids,
    );
    for (const [i, run] of runs.entries()) {
      t.match(run, { program_id: PROGRAM_ID, program_name: "Weld seam", status: "cancelled", serial_number: `SN${i}` });
      if (i === DAMAGED) t.match(run.error_message, /stored record is damaged/);
      else t.match(run, { error_message: null, metadata: { mark: `M${i}M` } });
    }
  }
  const detail = await get(`/runs/${ids[DAMAGED]}`);
  t.equal(detail.status, 500);
  t.match(detail.body, {
    code: "internal_error",
    message: /cannot be read/,
    params: { cause: "record_damaged", segment },
  });
  t.equal((await get(`/runs/${ids[0]}`)).status, 200);
  const health = await get("/health");
  t.match(health, { status: 200, body: { status: "degraded", components: { log: { status: "degraded" } } } });
  const log = (health.body.components as { log: { detail: string } }).log;
  t.match(log.detail, new RegExp(`reads found 1 damaged place, first segment ${segment}`));
});

t.test("a delivery whose run's record rots is an internal error to whoever wants it, and stays as it is", async (t) => {
  const service = await ServiceProcess.startFor(t);
  const client = new ContractClient(t, service.port);
  const target = await receiverFor(t, (_, response) => response.writeHead(500).end());
  const hook = await client.post("/webhooks", {
    body: { name: "mes", url: target.url, subscribed_events: ["ProgramFailed", "WebhookTest"], max_retries: 0 },
  });
  const producer = new ProducerClient({ address: { path: service.cellSocketPath }, producer: "cell" });
  t.teardown(() => producer.close());
  await producer.deliver(programPut());
  const id = producer.nextRunId();
  await producer.deliver({ type: "run.create", id, program_id: PROGRAM_ID, serial_number: "S" });
  await producer.deliver({ type: "run.fail", id, error_message: "MARK" });
  const list = { path: { webhook_id: hook.id } };
  const [failed] = await client.until("/webhooks/{webhook_id}/deliveries", ([one]) => one?.status === "failed", list);
  const tested = await client.post("/webhooks/{webhook_id}/test", { path: { webhook_id: hook.id } });
  const [segment] = readdirSync(join(service.dataDirectory, "meta")) as [string];
  const path = join(service.dataDirectory, "meta", segment);
  const at = readFileSync(path).lastIndexOf("MARK");
  const write = (text: string): void => {
    const file = openSync(path, "r+");
    writeSync(file, text, at);
    closeSync(file);
  };
  write("X");
  const one = { path: { delivery_id: failed?.id as string } };
  await client.refusal("post", "/webhook-deliveries/{delivery_id}/retry", 500, "internal_error", one);
  await client.refusal("get", "/webhook-deliveries/{delivery_id}", 500, "internal_error", one);
  await client.refusal("get", "/webhooks/{webhook_id}/deliveries", 500, "internal_error", list);
  t.equal(target.requests.length, 2, "no attempt was made");
  t.match(await client.get("/health"), {
    status: "degraded",
    components: { log: { status: "degraded", detail: /^since .*damaged place/ } },
  });
  t.match(await client.post("/webhook-deliveries/{delivery_id}/retry", { path: { delivery_id: tested.delivery_id } }), {
    attempts: 2,
  });

  write("M");
  const again = await client.get("/webhook-deliveries/{delivery_id}", one);
  t.match(again, { ...failed, attempt_history: listOf({ attempt_number: 1 }) }, "nothing was written over it");
  t.match(await client.post("/webhook-deliveries/{delivery_id}/retry", one), {
    attempts: 2,
    attempt_history: listOf({ attempt_number: 2 }, { attempt_number: 1 }),
  });
});
