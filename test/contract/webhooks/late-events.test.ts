import { execFile } from "node:child_process";
import type { ServerResponse } from "node:http";
import { promisify } from "node:util";
import { runInNewContext } from "node:vm";
import t, { type Test } from "tap";
import { MarkdownPage } from "../../helpers/documents/markdown-page.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { listOf } from "../../helpers/list-of.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { PROGRAM_ID, producerOf, subscribe } from "../../helpers/webhooks/announcing-cell.js";
import { type ReceivedRequest, receiverFor } from "../../helpers/webhooks/receiver.js";

/** What the test reads of an event's data. */
interface RunData {
  run_id?: string;
  updated_at: string;
}

const GUIDE = new MarkdownPage("workers/webhooks/README.md");
const [RULE = ""] = GUIDE.blocks("## Order", "js");

/** Takes events by the rule of the guide. */
class Follower {
  readonly runs = new Map<string, RunData>();
  /** What the run's detail says when an event comes. */
  readonly details: unknown[] = [];
  readonly #client: ContractClient;
  isOut = true;

  constructor(client: ContractClient) {
    this.#client = client;
  }

  async take({ body }: ReceivedRequest, response: ServerResponse): Promise<void> {
    const { data } = JSON.parse(body.toString()) as { data: RunData };
    if (!this.isOut && data.run_id !== undefined) {
      runInNewContext(RULE, { runs: this.runs, data });
      const path = { run_id: data.run_id };
      const { status, quality_status, updated_at } = await this.#client.get("/runs/{run_id}", { path });
      this.details.push({ status, quality_status, updated_at });
    }
    response.writeHead(this.isOut ? 503 : 204).end();
  }
}

/** Runs what the guide says below the heading. @param names its variables; it learns the id of a resend */
async function runBlocks(t: Test, heading: string, names: Record<string, string>): Promise<void> {
  const cwd = temporaryDirectory(t);
  for (const block of GUIDE.blocks(heading, "sh")) {
    // The test of all documents starts the commands that go on.
    const script = `curl() { command curl -sSf "$@"; }\n${block.replace(/^npx .* listen .*$/gm, "")}`;
    const env = { ...process.env, ...names };
    const { stdout } = await promisify(execFile)("bash", ["-ec", script], { cwd, env, timeout: 60_000 });
    t.pass(block);
    if (stdout.includes('"resend_id"')) names.RESEND = String(JSON.parse(stdout).resend_id);
  }
}

t.test("a Started that comes late does not undo a Completed, by the rule of the guide", async (t) => {
  const service = await ServiceProcess.startFor(t);
  const producer = await producerOf(t, service);
  const client = new ContractClient(t, service.port);
  const follower = new Follower(client);
  const receiver = await receiverFor(t, (request, response) => void follower.take(request, response));
  const { id: webhookId } = await subscribe(client, receiver.url, ["ProgramStarted", "ProgramCompleted"], {
    max_retries: 0,
  });
  const runId = producer.nextRunId();
  const path = { path: { run_id: runId } };
  await producer.deliver({ type: "run.create", id: runId, program_id: PROGRAM_ID });
  await producer.deliver({ type: "run.start", id: runId });
  const started = await client.until("/runs/{run_id}", (run) => run.webhook_delivery?.failed === 1, path);
  follower.isOut = false;
  await producer.deliver({ type: "check.add", run_id: runId, check: { name: "gap", status: "not_evaluated" } });
  await producer.deliver({ type: "run.finish", id: runId });
  await client.until("/runs/{run_id}", (run) => run.webhook_delivery?.delivered === 1, path);
  t.match(follower.runs.get(runId), { status: "completed", quality_status: "indeterminate" });

  const lateId = started.webhook_deliveries?.[0]?.id as string;
  await client.post("/webhook-deliveries/{delivery_id}/retry", { path: { delivery_id: lateId } });
  const events = receiver.requests.map(({ body }) => JSON.parse(body.toString()));
  t.same(
    events.map(({ event_name }) => event_name),
    ["ProgramStarted", "ProgramCompleted", "ProgramStarted"],
  );
  t.equal(receiver.requests.length, 3, "it did come late");
  t.match(follower.runs.get(runId), { status: "completed" }, "and undid nothing");
  const [first, completed, late] = events as { data: RunData }[];
  t.same(late, first);
  t.match(first?.data, { status: "running", quality_status: null, updated_at: started.updated_at });
  t.match(
    follower.details,
    listOf(
      { status: "completed", quality_status: "indeterminate", updated_at: completed?.data.updated_at },
      { status: "completed", quality_status: "indeterminate", updated_at: completed?.data.updated_at },
    ),
    "the run shows the very state that the event tells of",
  );
  t.match(completed?.data, { passed: false, quality_status: "indeterminate" });

  const names: Record<string, string> = {
    ...{ WEBHOOK: webhookId, DELIVERY: lateId, MARK: started.updated_at },
    BASE: `http://127.0.0.1:${service.port}`,
  };
  const run = (heading: string) => runBlocks(t, heading, names);
  for (const heading of ["## Change the secret", "## Sign with a key pair", "## Headers of your own"])
    await run(heading);
  for (const heading of ["## What is promised", "## Deliveries"]) await run(heading);
  follower.isOut = true;
  t.match(await client.post("/webhooks/{webhook_id}/test", { path: { webhook_id: webhookId } }), { delivered: false });
  follower.isOut = false;
  await run("## Resend many");
  t.match(receiver.requests.at(-1)?.headers, { "x-service-event": "WebhookTest", "x-service-signature": /^t=/ });
});
