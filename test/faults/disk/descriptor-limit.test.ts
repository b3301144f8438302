import { readdirSync } from "node:fs";
import { Agent, get } from "node:http";
import t from "tap";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { succeeds } from "../../helpers/disk/small-disk.js";
import { PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { until } from "../../helpers/until.js";
import { receiverFor } from "../../helpers/webhooks/receiver.js";

/** Far more than a busy machine takes for it: a bound for a failure, not a wait. */
const ANSWERED_WITHIN_MS = 20_000;

/** False, or why it cannot be tried here. */
const hasNoLimits = succeeds("prlimit", ["--pid", String(process.pid), "--nofile"]) ? false : "prlimit is not here";

interface Health {
  status: number;
  components: Record<string, { status: string; detail: string | null }>;
}

/** Over a connection that is there: for a new one the service has no descriptor. */
function health(agent: Agent, port: number): Promise<Health> {
  return new Promise((resolve, reject) => {
    const asked = get({ agent, port, path: "/health", timeout: ANSWERED_WITHIN_MS }, async (response) => {
      let text = "";
      for await (const piece of response.setEncoding("utf8")) text += piece;
      resolve({ status: response.statusCode as number, components: JSON.parse(text).components });
    });
    asked.on("timeout", () => asked.destroy(new Error("no answer: the connection was not kept")));
    asked.on("error", reject);
  });
}

/** What the process has open stays, and nothing more can be opened. */
function takeDescriptors(pid: number): void {
  const open = new Set(readdirSync(`/proc/${pid}/fd`).map(Number));
  let first = 0;
  while (open.has(first)) first++;
  limit(pid, `${first}:`);
}

function limit(pid: number, to: string): void {
  if (!succeeds("prlimit", ["--pid", String(pid), `--nofile=${to}`])) throw new Error(`no limit of ${to}`);
}

t.test("a process that has no descriptor left waits, says so, and goes on", { skip: hasNoLimits }, async (t) => {
  const service = await ServiceProcess.startFor(t, { descriptorLimit: "1024" });
  const receiver = await receiverFor(t);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  const producer = new ProducerClient({ address: { path: service.cellSocketPath }, producer: "cell" });
  t.teardown(() => producer.destroy());
  await producer.welcomed();
  await producer.deliver(programPut());
  const webhook = { name: "mes", url: receiver.url, subscribed_events: ["ProgramStarted"] };
  const made = await fetch(`http://127.0.0.1:${service.port}/webhooks`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(webhook),
  });
  t.equal(made.status, 201);
  t.equal((await health(agent, service.port)).status, 200);

  takeDescriptors(service.pid);
  let done = 0;
  const runIds: string[] = [];
  const deliveries: Promise<unknown>[] = [];
  const deliver = (body: object, payload?: Uint8Array): void => {
    deliveries.push(producer.deliver(body, payload).then(() => done++));
  };
  let now = await health(agent, service.port);
  // Files that were open only for a moment may have left some descriptors. Each run here keeps one more file open.
  await until("the recorder lacks a descriptor", async () => {
    const run_id = producer.nextRunId();
    runIds.push(run_id);
    deliver({ type: "run.create", id: run_id, program_id: PROGRAM_ID });
    deliver({ type: "run.start", id: run_id });
    const report = { type: "file.put", run_id, name: "r.pdf", file_type: "report", content_type: "application/pdf" };
    deliver(report, Buffer.from(`%PDF ${run_id}`));
    now = await health(agent, service.port);
    return now.components.recorder?.status === "degraded";
  });
  t.equal(now.status, 200, "nothing is down");
  const detail = /^since \d{4}-.*the process has no file descriptor left \(open .*: EMFILE\); work waits/;
  t.match(now.components.recorder?.detail, detail);
  t.ok(done < deliveries.length);

  limit(service.pid, "1024:");
  await Promise.all(deliveries);
  await until("the recorder is healthy again", async () => {
    now = await health(agent, service.port);
    return now.components.recorder?.status === "healthy";
  });
  t.equal(now.components.log?.status, "healthy");
  // Attempts that found no descriptor have failed, and are made again.
  await receiver.received(runIds.length);
  t.equal((await service.end()).code, 0);
});

t.test("a limit that is too small for the service is refused at once", { skip: hasNoLimits }, async (t) => {
  const expected =
    /may have 64 files and connections open, but the service needs at least 128: raise the limit with ulimit -n/;
  for (const command of ["serve", "demo"]) {
    await t.rejects(ServiceProcess.start({ args: [command], descriptorLimit: "64" }), expected, command);
  }
});
