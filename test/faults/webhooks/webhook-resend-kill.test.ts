import { execFileSync } from "node:child_process";
import t from "tap";
import { createRandom } from "../../../core/random.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { sized } from "../../helpers/test-size.js";
import { createRun, producerOf, subscribe } from "../../helpers/webhooks/announcing-cell.js";
import { receiverFor } from "../../helpers/webhooks/receiver.js";

const SEED = Number(process.env.TEST_SEED ?? 17);
const KILLS = sized(3, 50);
const RUNS = 60;
const PER_SECOND = 40;

t.test("kill -9 within a resend: exactly the chosen deliveries are attempted, each at least once", async (t) => {
  t.comment(`TEST_SEED=${SEED}`);
  const random = createRandom(SEED);
  const directory = temporaryDirectory(t);
  const begin = async () => {
    const service = await ServiceProcess.start({ args: ["serve"], dataDirectory: directory });
    return { service, client: new ContractClient(t, service.port) };
  };
  let { service, client } = await begin();
  t.teardown(() => service.dispose());
  let refuses = true;
  const arrivals: { id: string; atMs: number }[] = [];
  const target = await receiverFor(t, ({ headers }, response) => {
    arrivals.push({ id: String(headers["webhook-id"]), atMs: performance.now() });
    // Some answers come late, so that kills fall between the arrival at the receiver and the service's record.
    setTimeout(() => response.writeHead(refuses ? 503 : 204).end(), random.integer(0, 60));
  });
  const { id } = await subscribe(client, target.url, ["ProgramStarted", "ProgramFailed"], { max_retries: 0 });
  const path = { webhook_id: id };
  const producer = await producerOf(t, service);
  for (let nth = 0; nth < RUNS; nth++) {
    await producer.deliver({ type: "run.fail", id: await createRun(producer), error_message: "collision" });
  }
  await producer.close();
  const isSettled = (page: readonly { status: string }[]) =>
    page.length === 2 * RUNS && page.every(({ status }) => status === "failed");
  const page = await client.until("/webhooks/{webhook_id}/deliveries", isSettled, { path, query: { limit: 200 } });
  const chosen = page.filter(({ event_name }) => event_name === "ProgramFailed").map(({ payload }) => payload.event_id);
  // One in four is refused again: it has had its attempt all the same.
  refuses = false;
  arrivals.length = 0;
  const { resend_id, deliveries } = await client.post("/webhooks/{webhook_id}/resend", {
    path,
    body: { since: "2020-01-01T00:00:00Z", event_names: ["ProgramFailed"], per_second: PER_SECOND },
  });
  t.equal(deliveries, RUNS);
  const resend = { path: { ...path, resend_id } };
  for (let kill = 0; kill < KILLS; kill++) {
    const target = arrivals.length + random.integer(1, 8);
    while (arrivals.length < target) await new Promise((resolve) => setTimeout(resolve, 2));
    refuses = kill % 2 === 0;
    await service.end("SIGKILL");
    ({ service, client } = await begin());
    if ((await client.get("/webhooks/{webhook_id}/resends/{resend_id}", resend)).state !== "running") break;
  }
  refuses = false;
  const done = await client.until(
    "/webhooks/{webhook_id}/resends/{resend_id}",
    ({ state }) => state === "done",
    resend,
  );
  t.match(done, { deliveries: RUNS, attempted: RUNS, delivered: RUNS - done.failed });
  t.same([...new Set(arrivals.map(({ id }) => id))].sort(), [...chosen].sort(), "exactly the chosen ones");
  const counts = arrivals.map(({ atMs }, at) => arrivals.slice(at).filter((one) => one.atMs < atMs + 1000).length);
  t.ok(Math.max(...counts) <= PER_SECOND * 1.25, `${Math.max(...counts)} arrive within a second`);
  const after = await client.get("/webhooks/{webhook_id}/deliveries", { path, query: { limit: 200 } });
  for (const { event_name, status, attempts } of after) {
    if (event_name === "ProgramFailed") t.ok(attempts >= 2);
    else t.same([status, attempts], ["failed", 1], "no other is touched");
  }
  t.equal(after.filter(({ status }) => status === "delivered").length, done.delivered);
  t.equal((await service.end()).code, 0);
  const checked = execFileSync(process.execPath, ["dist/http/main.js", "check", "--data", directory]).toString();
  t.match(checked, /^ok$/m);
  t.comment(`${arrivals.length} attempts arrived for ${RUNS} deliveries; ${done.failed} failed again`);
});
