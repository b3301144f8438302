import type { ServerResponse } from "node:http";
import t from "tap";
import { runWithCaptures } from "../../helpers/captures/kept-captures.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { checkDirectory } from "../../helpers/store/checked-directory.js";
import { sized } from "../../helpers/test-size.js";
import { until } from "../../helpers/until.js";
import { subscribe } from "../../helpers/webhooks/announcing-cell.js";
import { receiverFor } from "../../helpers/webhooks/receiver.js";

const SCRIPT = new URL("../../helpers/process/small-segments-service.js", import.meta.url).pathname;
const PRELOAD = new URL("../../helpers/webhooks/no-kept-payloads.js", import.meta.url).href;
/** Each with captures, of which retention keeps those of the last few runs. */
const RUNS = sized(30, 60);

interface Event {
  event_id: string;
  data: { run_id: string };
}

t.test("events that are read from the store go out, also after retention took their captures", async (t) => {
  const held: ServerResponse[] = [];
  let isHolding = true;
  const receiver = await receiverFor(t, (_, response) => {
    if (isHolding) held.push(response);
    else response.writeHead(204).end();
  });
  const service = await ServiceProcess.startFor(t, {
    script: SCRIPT,
    environment: { NODE_OPTIONS: `--import ${PRELOAD}` },
  });
  const client = new ContractClient(t, service.port);
  const settings = { delivery_timeout_seconds: 9, max_retries: 0 };
  const { id: hookId } = await subscribe(client, receiver.url, ["ProgramCompleted"], { ...settings });
  const producer = await RawProducer.connect({ path: service.cellSocketPath }, "controller");
  t.teardown(() => producer.socket.destroy());
  const figure = async (name: string): Promise<number> => {
    const text = await (await fetch(`http://127.0.0.1:${service.port}/metrics`)).text();
    return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1]);
  };
  const runs: string[] = [];
  for (let nth = 0; nth < RUNS; nth++) {
    const { id } = await runWithCaptures(producer, nth % 200);
    for (let k = 0; k < 6; k++) {
      const data = { padding: "x".repeat(300) };
      await producer.accept({ type: "event.add", run_id: id, event_type: "e", data });
    }
    await producer.accept({ type: "run.finish", id });
    runs.push(id);
  }
  // Retention records anew most of the runs whose deliveries wait.
  const isDone = async (): Promise<boolean> => (await figure("inspection_retention_runs_total")) >= RUNS / 2;
  await until("half of the runs", isDone);
  const waiting = await figure("inspection_webhook_waiting");
  t.ok(waiting >= RUNS / 4, `${waiting} wait`);
  const keptBytes = await figure("inspection_webhook_payload_bytes");

  isHolding = false;
  for (const response of held) response.writeHead(204).end();
  const all = await client.until(
    "/webhooks/{webhook_id}/deliveries",
    (page) => page.length === RUNS && page.every(({ status }) => status !== "pending"),
    { path: { webhook_id: hookId }, query: { limit: 200 } },
  );
  t.same(
    new Set(all.map(({ payload }) => (payload as unknown as Event).data.run_id)),
    new Set(runs),
    "one of each run",
  );
  const bodies = new Map(receiver.requests.map(({ headers, body }) => [headers["webhook-id"], body.toString()]));
  t.equal(bodies.size, RUNS, "each has arrived");
  t.equal(receiver.requests.length, RUNS, "once");
  for (const { payload } of all)
    t.equal(bodies.get((payload as unknown as Event).event_id), JSON.stringify(payload), "as it is stored");
  t.equal(keptBytes, 0);
  t.ok(all.filter(({ status }) => status === "delivered").length >= waiting, "those that waited were taken");
  t.match(await service.end(), { code: 0 });
  t.match(await checkDirectory(service.dataDirectory), { ok: true, summary: { damages: 0 } });
});
