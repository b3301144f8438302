import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import t, { type Test } from "tap";
import { EVENT_SCHEMAS } from "../../../core/webhook/event-schema.js";
import { verifyWebhook } from "../../../core/webhook/verify-webhook.js";
import { type ContractClient, closed } from "../../helpers/http/contract-client.js";
import { listOf } from "../../helpers/list-of.js";
import type { ServiceProcess } from "../../helpers/process/service-process.js";
import {
  ALL_EVENTS,
  completedRun,
  createRun,
  producerOf,
  SECRET,
  start,
  subscribe,
  TIME,
} from "../../helpers/webhooks/announcing-cell.js";
import { receiverFor } from "../../helpers/webhooks/receiver.js";

const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, strictTypes: false, validateFormats: false });

t.test("tests and retries are one attempt each, made while the request waits", async (t) => {
  const { service, client } = await start(t);
  let status = 500;
  const target = await receiverFor(t, (_, response) => response.writeHead(status, { "X-A": "b" }).end("answer"));
  const hook = await subscribe(client, target.url, ["ProgramFailed"], { enabled: false, on_failure_mode: "WARN" });
  const failed = await client.post("/webhooks/{webhook_id}/test", { path: { webhook_id: hook.id } });
  t.match(failed, { delivered: false, status_code: 500, error: "the receiver answered 500" });
  t.equal(target.requests.length, 1, "one attempt, whatever it subscribes to, and disabled");
  const event = JSON.parse(String(target.requests[0]?.body));
  const validate = ajv.compile(closed(EVENT_SCHEMAS.WebhookTest));
  t.ok(validate(event), JSON.stringify(validate.errors));
  const path = { delivery_id: failed.delivery_id };
  const before = await client.get("/webhook-deliveries/{delivery_id}", { path });
  t.match(before, { event_name: "WebhookTest", status: "failed", program_run_id: null, attempts: 1, payload: event });
  t.match(before.attempt_history, listOf({ response_body: "answer", response_headers: { "x-a": "b" } }));

  const retried = await client.post("/webhook-deliveries/{delivery_id}/retry", { path });
  t.match(retried, {
    status: "failed",
    attempts: 2,
    attempt_history: listOf({ attempt_number: 2 }, { attempt_number: 1 }),
  });
  status = 200;
  const delivered = await client.post("/webhook-deliveries/{delivery_id}/retry", { path });
  t.match(delivered, { status: "delivered", attempts: 3, last_status_code: 200, last_error: null, delivered_at: TIME });
  t.same(await client.post("/webhook-deliveries/{delivery_id}/retry", { path }), delivered, "unchanged");
  t.equal(target.requests.length, 3, "no attempt for the delivered one");
  t.equal(new Set(target.requests.map(({ headers }) => headers["webhook-id"])).size, 1, "the same event_id");
  t.equal(new Set(target.requests.map(({ body }) => body.toString())).size, 1, "the same bytes");

  await client.patch("/webhooks/{webhook_id}", {
    path: { webhook_id: hook.id },
    body: { enabled: true, max_retries: 0 },
  });
  status = 503;
  await retryAtOnce(t, service, client, hook.id);

  status = 500;
  const last = await client.post("/webhooks/{webhook_id}/test", { path: { webhook_id: hook.id } });
  t.equal(last.delivered, true);
  await client.patch("/webhooks/{webhook_id}", { path: { webhook_id: hook.id }, body: { url: target.url } });
  const undelivered = await client.post("/webhooks/{webhook_id}/test", { path: { webhook_id: hook.id } });
  await client.delete("/webhooks/{webhook_id}", { path: { webhook_id: hook.id } });
  await client.refusal("post", "/webhook-deliveries/{delivery_id}/retry", 409, "webhook_deleted", {
    path: { delivery_id: undelivered.delivery_id },
  });
});

/** Eight retries at once of a failed delivery of a run: one attempt at a time. */
async function retryAtOnce(t: Test, service: ServiceProcess, client: ContractClient, hookId: string): Promise<void> {
  const producer = await producerOf(t, service);
  const runId = await createRun(producer);
  await producer.deliver({ type: "run.fail", id: runId, error_message: "collision" });
  const run = await client.until("/runs/{run_id}", (json) => json.webhook_delivery?.failed === 1, {
    path: { run_id: runId },
  });
  t.match(run, { status: "failed", webhook_delivery: { delivered: 0, failed: 1, pending: 0, all_ok: false } });
  t.match(
    run.event_log,
    listOf({ event_type: "webhook_delivery_failed", data: { webhook_name: "mes", last_error: /503/ } }),
  );
  const id = run.webhook_deliveries?.[0]?.id as string;
  let open = 0;
  let mostOpen = 0;
  const slow = await receiverFor(t, (_, response) => {
    mostOpen = Math.max(mostOpen, ++open);
    setTimeout(() => {
      open--;
      response.writeHead(slow.requests.length < 3 ? 500 : 200).end();
    }, 50);
  });
  await client.patch("/webhooks/{webhook_id}", {
    path: { webhook_id: hookId },
    body: { url: slow.url, secret: SECRET },
  });
  const answers = await Promise.all(
    Array.from({ length: 8 }, () =>
      client.post("/webhook-deliveries/{delivery_id}/retry", { path: { delivery_id: id } }),
    ),
  );
  t.equal(mostOpen, 1, "one attempt at a time");
  t.equal(slow.requests.length, 3, "none after the one that was taken");
  t.equal(answers.filter((answer) => answer.status === "delivered").length, 6);
  t.same(answers.map((answer) => answer.attempts).sort(), [2, 3, 4, 4, 4, 4, 4, 4]);
  for (const { headers, body } of slow.requests) verifyWebhook({ secret: SECRET, headers, body });
  const after = await client.get("/runs/{run_id}", { path: { run_id: runId } });
  t.match(after.webhook_delivery, { delivered: 1, failed: 0, all_ok: true });
  t.equal(after.updated_at, run.updated_at, "deliveries leave the run's updated_at");
  await client.patch("/webhooks/{webhook_id}", { path: { webhook_id: hookId }, body: { name: "renamed" } });
  const { event_log } = await client.get("/runs/{run_id}", { path: { run_id: runId } });
  t.same(event_log, run.event_log, "what was noted stays noted, as it was");
}

t.test("a retry takes the place of the automatic attempts that are left", async (t) => {
  const { service, client } = await start(t);
  let status = 500;
  const target = await receiverFor(t, (_, response) => response.writeHead(status).end());
  const hook = await subscribe(client, target.url, ["ProgramFailed"], { retry_backoff_seconds: 8, max_retries: 5 });
  const producer = await producerOf(t, service);
  const runId = await createRun(producer);
  await producer.deliver({ type: "run.fail", id: runId, error_message: "collision" });
  const [pending] = await client.until("/webhooks/{webhook_id}/deliveries", ([one]) => one?.attempts === 1, {
    path: { webhook_id: hook.id },
  });
  t.match(pending, { status: "pending", next_retry_at: TIME, last_status_code: 500 });
  status = 200;
  const path = { delivery_id: pending?.id as string };
  const retried = await client.post("/webhook-deliveries/{delivery_id}/retry", { path });
  t.match(retried, { status: "delivered", attempts: 2, next_retry_at: null });
  t.equal(target.requests.length, 2);
});

t.test("what waits for a webhook that is disabled or deleted fails, and a restart shows all of it", async (t) => {
  const first = await start(t);
  const target = await receiverFor(t);
  await target.close();
  const create = (name: string) =>
    first.client.post("/webhooks", {
      body: { name, url: target.url, subscribed_events: ["ProgramFailed"], secret: SECRET, retry_backoff_seconds: 9 },
    });
  const [disabled, deleted] = [await create("off"), await create("gone")];
  const producer = await producerOf(t, first.service);
  const runId = await createRun(producer);
  await producer.deliver({ type: "run.fail", id: runId, error_message: "collision" });
  const path = { run_id: runId };
  await first.client.until(
    "/runs/{run_id}",
    (json) => json.webhook_deliveries?.filter(({ attempts }) => attempts === 1).length === 2,
    { path },
  );
  const kept = { path: { webhook_id: disabled.id } };
  const hook = await first.client.patch("/webhooks/{webhook_id}", { ...kept, body: { enabled: false } });
  await first.client.delete("/webhooks/{webhook_id}", { path: { webhook_id: deleted.id } });
  await producer.close();
  t.equal((await first.service.end()).code, 0, "a pause does not hold up the end");
  const second = await start(t, [], first.service.dataDirectory);
  t.same(await second.client.get("/webhooks"), [hook]);
  const late = await second.client.until("/runs/{run_id}", (json) => json.webhook_delivery?.pending === 0, { path });
  t.match(
    late.webhook_deliveries?.map((one) => [one.status, one.last_error]),
    listOf(listOf("failed", "the webhook was disabled"), listOf("failed", "the webhook was deleted")),
  );
  t.same(late.webhook_delivery, { delivered: 0, failed: 2, pending: 0, all_ok: false });
  t.equal((await second.service.end()).code, 0);
  const out = execFileSync(process.execPath, ["dist/http/main.js", "check", "--data", first.service.dataDirectory]);
  t.match(out.toString(), /^ok$/m);
});

t.test("a secret is nowhere but in the log's own bytes", async (t) => {
  const { service, client } = await start(t, ["--log-level", "debug"]);
  const target = await receiverFor(t);
  const secret = "hush-hush-hush";
  const seen: string[] = [];
  const note = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const answer = body === undefined ? await client.raw(method, path) : await client.rawJson(method, path, body);
    seen.push(answer.body.toString(), JSON.stringify(answer.headers));
    return answer.json();
  };
  const body = { name: "mes", url: target.url, subscribed_events: ALL_EVENTS, secret };
  const { id } = (await note("POST", "/webhooks", body)) as { id: string };
  await note("PATCH", `/webhooks/${id}`, { secret: `${secret}2` });
  await note("POST", "/webhooks", { ...body, secret: [secret] });
  await note("POST", "/webhooks", { ...body, secret: secret.repeat(100) });
  await note("POST", "/webhooks", { ...body, Secret: secret });
  await note("POST", `/webhooks/${id}/test`);
  const producer = await producerOf(t, service);
  const runId = await completedRun(producer);
  await target.received(3);
  for (const path of ["/webhooks", `/webhooks/${id}`, `/webhooks/${id}/deliveries`, `/runs/${runId}`, "/health"]) {
    await note("GET", path);
  }
  const [delivery] = await client.get("/webhooks/{webhook_id}/deliveries", { path: { webhook_id: id } });
  await note("GET", `/webhook-deliveries/${delivery?.id}`);
  await note("POST", `/webhook-deliveries/${delivery?.id}/retry`);
  for (const broken of [`{"secret":"${secret}",}`, `"${secret}"`, `["${secret}"]`]) {
    const headers = { "Content-Type": "application/json" };
    const response = await fetch(`http://127.0.0.1:${service.port}/webhooks`, {
      method: "POST",
      headers,
      body: broken,
    });
    seen.push(await response.text());
  }
  for (const path of ["/metrics", "/openapi.json", "/docs"]) {
    seen.push(await (await fetch(`http://127.0.0.1:${service.port}${path}`)).text());
  }
  await producer.close();
  const { stdout, stderr } = await service.end();
  seen.push(stdout, stderr);
  const data = ["--data", service.dataDirectory];
  const run = (...args: string[]) => execFileSync(process.execPath, ["dist/http/main.js", ...args, ...data]).toString();
  seen.push(run("inspect"), run("check"));
  const to = join(service.dataDirectory, "exported");
  seen.push(
    run("export", "--run", runId, "--to", to),
    ...readdirSync(to)
      .filter((n) => n.endsWith(".json"))
      .map((n) => readFileSync(join(to, n), "utf8")),
  );
  t.ok(seen.length > 15);
  for (const text of seen) t.notMatch(text, /hush/);
  t.match(run("inspect"), /"has_?[sS]ecret":true/);
});
