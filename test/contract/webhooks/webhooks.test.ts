import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { Webhook as StandardWebhook } from "standardwebhooks";
import t, { type Test } from "tap";
import { EVENT_SCHEMAS } from "../../../core/webhook/event-schema.js";
import { verifyWebhook } from "../../../core/webhook/verify-webhook.js";
import type { EventName } from "../../../core/webhook/webhook.js";
import type { components } from "../../../http/client/interface-types.js";
import { DELIVERY_HEADERS } from "../../../http/openapi/documented-headers.js";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { ContractClient, closed } from "../../helpers/http/contract-client.js";
import { listOf } from "../../helpers/list-of.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { type Receiver, startReceiver } from "../../helpers/webhooks/receiver.js";

const PROGRAM_ID = "019b76da-a800-7000-8000-000000000001";
const UNKNOWN_ID = "019b76da-a800-7000-8000-0000000000ff";
const ALL_EVENTS: EventName[] = ["ProgramStarted", "ProgramCompleted", "ProgramFailed", "ProgramCancelled"];
const SECRET = "whsec_aHVzaGh1c2hodXNo";
interface Fault {
  field: string;
}
type CreateWebhook = components["schemas"]["CreateWebhookRequest"];
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/;

const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, strictTypes: false, validateFormats: false });

async function start(t: Test, args: readonly string[] = [], dataDirectory?: string) {
  const service = await ServiceProcess.start({
    args: ["serve", ...args],
    ...(dataDirectory !== undefined && { dataDirectory }),
  });
  t.teardown(() => service.dispose());
  return { service, client: new ContractClient(t, service.port) };
}

async function receiver(t: Test, ...args: Parameters<typeof startReceiver>): Promise<Receiver> {
  const one = await startReceiver(...args);
  t.teardown(() => one.close());
  return one;
}

async function producerOf(t: Test, service: ServiceProcess): Promise<ProducerClient> {
  const producer = new ProducerClient({ address: { path: service.cellSocketPath }, producer: "cell" });
  t.teardown(() => producer.close());
  await producer.welcomed();
  await producer.deliver({ type: "cell.put", kiosk_serial_number: "K-7", unit_system: "imperial" });
  await producer.deliver({
    type: "program.put",
    program: { id: PROGRAM_ID, name: "Disc", status: "active", robot_ids: ["r1", "r2"], steps: [{ type: "wait" }] },
  });
  return producer;
}

async function createRun(producer: ProducerClient): Promise<string> {
  const id = producer.nextRunId();
  await producer.deliver({ type: "run.create", id, program_id: PROGRAM_ID, serial_number: "S-1" });
  await producer.deliver({ type: "run.start", id });
  return id;
}

async function completedRun(producer: ProducerClient): Promise<string> {
  const id = await createRun(producer);
  const check = { name: "gap", status: "passed", value: 25.4, nominal: 50.8, delta: -25.4, threshold: 2.54 };
  await producer.deliver({ type: "check.add", run_id: id, check });
  await producer.deliver({ type: "defect.add", run_id: id, defect: { type: "dent" } });
  const report = { type: "file.put", run_id: id, name: "r.pdf", file_type: "report", content_type: "application/pdf" };
  await producer.deliver(report, Buffer.from("%PDF"));
  await producer.deliver({ type: "run.finish", id });
  return id;
}

t.test("a write with If-Match changes nothing unless it holds", async (t) => {
  const { client } = await start(t);
  const { id } = await client.post("/webhooks", {
    body: { name: "first", url: "http://127.0.0.1:9/hook", subscribed_events: ["ProgramFailed"] },
  });
  const path = `/webhooks/${id}`;
  const { etag } = (await client.raw("GET", path)).headers;
  const json = "Content-Type: application/json\r\n";
  const rename = (condition: string) => client.raw("PATCH", path, `${json}${condition}`, '{"name":"second"}');
  // By strong comparison a weak tag equals none, not even itself (RFC 9110, section 8.8.3.2).
  for (const tag of [etag, '"x"', `"x", ${etag}`, "x", '""']) {
    const refused = await rename(`If-Match: ${tag}\r\n`);
    t.equal(refused.status, 412, `PATCH if ${tag}`);
    t.match(refused.json(), { code: "precondition_failed", params: { field: "if-match" } });
    t.equal((await client.raw("DELETE", path, `If-Match: ${tag}\r\n`)).status, 412, `DELETE if ${tag}`);
  }
  t.equal((await client.get("/webhooks/{webhook_id}", { path: { webhook_id: id } })).name, "first");
  t.equal((await rename("If-Match: *\r\n")).status, 200);
  t.equal((await rename("If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT\r\n")).status, 200, "it has no such time");
  const unknown = `/webhooks/${UNKNOWN_ID}`;
  t.equal((await client.raw("PATCH", unknown, `${json}If-Match: "x"\r\n`, "{}")).status, 404);
  t.equal((await client.raw("DELETE", path, "If-Match: *\r\n")).status, 204);
  t.equal((await client.raw("DELETE", path, 'If-Match: "x"\r\n')).status, 204, "it is gone already");
});

t.test("management: every field, default and rule", async (t) => {
  const { client } = await start(t);
  t.same(await client.get("/webhooks"), []);
  const minimal: CreateWebhook = { name: "mes", url: "http://10.0.0.1/hook", subscribed_events: ["ProgramCompleted"] };
  const first = await client.post("/webhooks", { body: minimal });
  t.match(first, {
    ...{ ...minimal, on_failure_mode: "IGNORE", enabled: true, has_secret: false, delivery_timeout_seconds: 3 },
    ...{ retry_backoff_seconds: 1, max_retries: 3, created_at: TIME, updated_at: first.created_at },
  });
  const full: CreateWebhook = {
    name: "scada",
    url: "https://s.factory/",
    subscribed_events: [...ALL_EVENTS, "WebhookTest"],
    enabled: false,
    on_failure_mode: "WARN",
    delivery_timeout_seconds: 1.5,
    retry_backoff_seconds: 0,
    max_retries: 10,
  };
  const second = await client.post("/webhooks", { body: { ...full, secret: SECRET } });
  t.match(second, { ...full, has_secret: true });
  const again = await client.post("/webhooks", { body: minimal });
  t.not(again.id, first.id, "creating is not idempotent");
  const listed = await client.get("/webhooks");
  t.same(listed, [first, second, again], "oldest first");

  const path = { webhook_id: second.id };
  const patch = (body: components["schemas"]["UpdateWebhookRequest"]) =>
    client.patch("/webhooks/{webhook_id}", { path, body });
  t.same(await client.get("/webhooks/{webhook_id}", { path }), second);
  t.same(await patch({}), second, "nothing given, nothing changed");
  const nulls = Object.fromEntries(Object.keys(full).map((field) => [field, null]));
  t.same(await patch(nulls), second, "null leaves a field");
  const changed = await patch({ name: "x", max_retries: 0, enabled: true });
  t.match(changed, {
    ...full,
    name: "x",
    max_retries: 0,
    enabled: true,
    has_secret: true,
    created_at: second.created_at,
  });
  t.ok(changed.updated_at > second.updated_at);
  t.same(await patch({ name: "x" }), changed, "idempotent in effect");
  t.match(await patch({ secret: null }), { has_secret: false });

  await client.delete("/webhooks/{webhook_id}", { path });
  // A second one too.
  await client.delete("/webhooks/{webhook_id}", { path });
  await client.refusal("get", "/webhooks/{webhook_id}", 404, "webhook_not_found", { path });
  await client.refusal("patch", "/webhooks/{webhook_id}", 404, "webhook_not_found", { path, body: {} });
  await client.refusal("post", "/webhooks/{webhook_id}/test", 404, "webhook_not_found", { path });
  t.same(await client.get("/webhooks/{webhook_id}/deliveries", { path }), []);
  for (const id of [UNKNOWN_ID, "x"]) {
    const path = { webhook_id: id };
    await client.refusal("get", "/webhooks/{webhook_id}", 404, "webhook_not_found", { path });
    await client.refusal("patch", "/webhooks/{webhook_id}", 404, "webhook_not_found", { path, body: {} });
    await client.refusal("delete", "/webhooks/{webhook_id}", 404, "webhook_not_found", { path });
    await client.refusal("get", "/webhooks/{webhook_id}/deliveries", 404, "webhook_not_found", { path });
    const delivery = { path: { delivery_id: id } };
    await client.refusal("get", "/webhook-deliveries/{delivery_id}", 404, "delivery_not_found", delivery);
    await client.refusal("post", "/webhook-deliveries/{delivery_id}/retry", 404, "delivery_not_found", delivery);
  }
  for (const query of ["limit=0", "limit=201", "limit=x", "before=yesterday", "limit=1&limit=2"]) {
    await client.rawRefusal(`/webhooks/${first.id}/deliveries?${query}`, 422, "invalid_parameter");
  }
  const badBody = { url: "http://u:hush@h/", subscribed_events: [], secret: "whsec_?" };
  const bad = await client.rawJson("POST", "/webhooks", badBody);
  t.match([bad.status, bad.json()], listOf(422, { code: "invalid_parameter" }));
  t.notMatch(bad.body.toString(), /hush/);
  t.equal((await client.get("/webhooks")).length, 2, "nothing was stored of it");
});

t.test("a bad body changes nothing: every refusal, on create and on update", async (t) => {
  const { service, client } = await start(t);
  const good: CreateWebhook = { name: "mes", url: "http://10.0.0.1/hook", subscribed_events: ["ProgramCompleted"] };
  const hook = await client.post("/webhooks", { body: good });
  const path = `/webhooks/${hook.id}`;
  const faults: [object, string[]][] = [
    [{ name: "other", max_retries: 11 }, ["max_retries"]],
    [{ url: "http://10.0.0.2/", enabled: "yes", retry_backoff_seconds: 31 }, ["enabled", "retry_backoff_seconds"]],
    [{ subscribed_events: ["ProgramStarted", "Nope"] }, ["subscribed_events/1"]],
    [{ subscribed_events: [] }, ["subscribed_events"]],
    [{ delivery_timeout_seconds: 0.5, on_failure_mode: "FAIL" }, ["delivery_timeout_seconds", "on_failure_mode"]],
    [{ name: "other", timeout: 3 }, ["timeout"]],
    [{ name: "other", url: "ftp://10.0.0.2/" }, ["url"]],
  ];
  for (const [body, fields] of faults) {
    for (const [method, to, all] of [
      ["PATCH", path, body],
      ["POST", "/webhooks", { ...good, ...body }],
    ] as const) {
      const refusal = await client.rawJson(method, to, all);
      const { code, params } = refusal.json() as { code: string; params: { faults?: Fault[] } & Fault };
      t.same([refusal.status, code], [422, "invalid_parameter"], `${method} ${JSON.stringify(body)}`);
      const named = (params.faults ?? [params]).map(({ field }) => field);
      t.same(named.sort(), fields, "each field is named");
    }
  }
  const answerTo = async (method: string, to: string, body: string, type = "application/json") => {
    const response = await fetch(`http://127.0.0.1:${service.port}${to}`, {
      ...{ method, body, headers: { "Content-Type": type } },
    });
    return [response.status, ((await response.json()) as { code: string }).code];
  };
  for (const [method, to] of [
    ["POST", "/webhooks"],
    ["PATCH", path],
  ] as const) {
    t.same(await answerTo(method, to, '{"name":'), [422, "malformed_json"], method);
    t.same(await answerTo(method, to, ""), [422, "malformed_json"], method);
    t.same(await answerTo(method, to, "[]"), [422, "invalid_parameter"], method);
    t.same(await answerTo(method, to, JSON.stringify(good), "text/plain"), [415, "unsupported_media_type"], method);
    t.same(await answerTo(method, to, "x".repeat(65_537)), [413, "payload_too_large"], method);
    const noSuch = to === path ? `/webhooks/${UNKNOWN_ID}` : to;
    t.same(
      await answerTo(method, noSuch, '{"max_retries":11}'),
      [422, "invalid_parameter"],
      "the body is looked at first",
    );
  }
  for (const field of ["name", "url", "subscribed_events"]) {
    const refusal = await client.rawJson("POST", "/webhooks", { ...good, [field]: null });
    t.match(
      [refusal.status, refusal.json()],
      listOf(422, { params: { field } }),
      "null is for updates, but for the secret",
    );
  }
  t.match(await client.post("/webhooks", { body: { ...good, secret: null } }), {
    has_secret: false,
  });
  const kept = await client.get("/webhooks/{webhook_id}", { path: { webhook_id: hook.id } });
  t.same(kept, hook, "nothing of all that was applied");
  t.equal((await client.get("/webhooks")).length, 2);
  t.same((await client.raw("GET", `${path}/deliveries?limit=&before=`)).json(), [], "an empty value is none");
  await client.refusal("get", "/webhooks/{webhook_id}/deliveries", 422, "invalid_parameter", {
    path: { webhook_id: UNKNOWN_ID },
    query: { limit: 0 },
  });
});

t.test("the events of runs, as the receiver gets them and as the interface shows them", async (t) => {
  const { service, client } = await start(t);
  const target = await receiver(t);
  const hook = await client.post("/webhooks", {
    body: { name: "mes", url: `${target.url}/hook`, subscribed_events: ALL_EVENTS, secret: SECRET },
  });
  await client.post("/webhooks", {
    body: { name: "off", url: target.url, subscribed_events: ALL_EVENTS, enabled: false },
  });
  const producer = await producerOf(t, service);
  const runId = await completedRun(producer);
  await target.received(2);
  const failedId = await createRun(producer);
  await producer.deliver({ type: "run.fail", id: failedId, error_message: "collision" });
  const cancelledId = producer.nextRunId();
  await producer.deliver({ type: "run.create", id: cancelledId, program_id: PROGRAM_ID });
  await producer.deliver({ type: "run.cancel", id: cancelledId });
  await target.received(5);

  const events = target.requests.map(({ body }) => JSON.parse(body.toString()));
  const of = (name: string, id: string) => events.find((e) => e.event_name === name && e.data.run_id === id);
  t.equal(events.length, 5, "and none to the disabled one");
  for (const event of events) {
    const validate = ajv.compile(closed(EVENT_SCHEMAS[event.event_name as EventName]));
    t.ok(validate(event), `${event.event_name}: ${JSON.stringify(validate.errors)}`);
    t.match(event, { schema_version: 3, kiosk_serial_number: "K-7", data: { program_name: "Disc", robot_id: "r1" } });
  }
  t.match(of("ProgramStarted", runId), { data: { status: "running", serial_number: "S-1", revision: 1 } });
  t.match(of("ProgramFailed", failedId), { data: { status: "failed", error_message: "collision", revision: 2 } });
  t.match(of("ProgramCancelled", cancelledId), { data: { status: "cancelled", started_at: null } });
  const completed = of("ProgramCompleted", runId);
  t.match(completed, {
    data: {
      ...{ status: "completed", passed: true, unit_system: "imperial", defects: [{ type: "dent" }] },
      qc_checks: listOf({ name: "gap", status: "passed", value: 1, nominal: 2, delta: -1, threshold: 0.1, unit: "in" }),
      files: listOf({ name: "r.pdf", href: `/runs/${runId}/files/r.pdf`, size_in_bytes: 4 }),
    },
  });
  t.equal(completed.service_version, (await client.get("/system/version"))["service-version"]);
  const ofConnection = ["host", "connection", "content-length", "content-type"];
  const documented = DELIVERY_HEADERS.map(({ name }) => String(name).toLowerCase());
  for (const { headers, body } of target.requests) {
    t.same(Object.keys(headers).sort(), [...documented, ...ofConnection].sort(), "the headers that the document tells");
    for (const { name, schema } of DELIVERY_HEADERS) {
      t.ok(ajv.compile(schema as object)(headers[String(name).toLowerCase()]), `${name}: as it is described`);
    }
    verifyWebhook({ secret: SECRET, headers, body });
    // As it came over the wire, by the public package too: it reads the Standard Webhooks headers.
    t.same(
      new StandardWebhook(SECRET).verify(body.toString(), headers as Record<string, string>),
      JSON.parse(`${body}`),
    );
    t.match(headers, { "x-service-event": JSON.parse(body.toString()).event_name, "content-type": "application/json" });
  }

  const run = await client.until("/runs/{run_id}", (json) => json.webhook_delivery?.all_ok === true, {
    path: { run_id: runId },
  });
  t.same(run.webhook_delivery, { delivered: 2, failed: 0, pending: 0, all_ok: true });
  t.same(
    run.webhook_deliveries?.map((one) => one.event_name),
    ["ProgramStarted", "ProgramCompleted"],
  );
  t.match(run.webhook_deliveries?.[1], {
    webhook_id: hook.id,
    webhook_name: "mes",
    status: "delivered",
    attempts: 1,
    last_error: null,
  });
  await client.get("/runs/{run_id}", { path: { run_id: runId } });

  const deliveries = await client.until(
    "/webhooks/{webhook_id}/deliveries",
    (json) => json.every((one) => one.status === "delivered"),
    { path: { webhook_id: hook.id } },
  );
  await client.get("/webhooks/{webhook_id}/deliveries", { path: { webhook_id: hook.id } });
  t.equal(deliveries.length, 5);
  const times = deliveries.map((one) => one.created_at);
  t.same(times, [...times].sort().reverse(), "newest first");
  t.equal(new Set(times).size, 5, "no two share a mark");
  const pages: unknown[] = [];
  for (let query: { limit: number; before?: string } = { limit: 2 }; ; ) {
    const page = await client.get("/webhooks/{webhook_id}/deliveries", { path: { webhook_id: hook.id }, query });
    const oldest = page.at(-1);
    if (oldest === undefined) break;
    pages.push(...page);
    query = { limit: 2, before: oldest.created_at };
  }
  t.same(pages, deliveries, "paged by before, each once");
  const newest = deliveries[0]?.created_at as string;
  const behind = await client.raw("GET", `/webhooks/${hook.id}/deliveries?before=${newest.replace("Z", "4Z")}`);
  t.same(behind.json(), deliveries, "before a time behind the newest, though by less than a microsecond");
  const listed = deliveries.find(({ payload }) => (payload as { event_id?: string }).event_id === completed.event_id);
  t.same(listed?.payload, completed, "the payload is what was posted");
  const listedPath = { path: { delivery_id: listed?.id as string } };
  const detail = await client.get("/webhook-deliveries/{delivery_id}", listedPath);
  t.match(detail, { ...listed, program_run_id: runId, last_status_code: 204, next_retry_at: null, delivered_at: TIME });
  t.match(
    detail.attempt_history,
    listOf({ attempt_number: 1, status_code: 204, error: null, response_body: "", completed_at: TIME }),
  );
  const raw = target.requests.find(({ body }) => body.includes(completed.event_id))?.body.toString() ?? "?";
  const { text } = await client.answer("get", "/webhook-deliveries/{delivery_id}", listedPath);
  t.ok(text.includes(raw), "byte for byte");

  const tag = (await client.answer("get", "/runs/{run_id}", { path: { run_id: runId } })).headers.etag ?? "";
  await client.patch("/webhooks/{webhook_id}", { path: { webhook_id: hook.id }, body: { name: "renamed" } });
  const renamed = await client.answer("get", "/runs/{run_id}", { path: { run_id: runId } });
  t.match(renamed.data?.webhook_deliveries, listOf({ webhook_name: "renamed" }, { webhook_name: "renamed" }));
  t.not(renamed.headers.etag, tag, "another tag with another name");
  await client.patch("/webhooks/{webhook_id}", { path: { webhook_id: hook.id }, body: { name: "mes" } });
  t.same(await client.get("/runs/{run_id}", { path: { run_id: runId } }), run, "and back");

  await client.delete("/webhooks/{webhook_id}", { path: { webhook_id: hook.id } });
  t.same(await client.get("/webhook-deliveries/{delivery_id}", listedPath), detail, "past deliveries stay readable");
  t.equal((await client.get("/webhooks/{webhook_id}/deliveries", { path: { webhook_id: hook.id } })).length, 5);
  t.same(
    (await client.get("/runs/{run_id}", { path: { run_id: runId } })).webhook_deliveries,
    run.webhook_deliveries,
    "with the name",
  );
  const returned = await client.post("/webhook-deliveries/{delivery_id}/retry", listedPath);
  t.same(returned, detail, "a delivered one is returned");
});

t.test("the event of a run whose program was deleted, and had no robot: null for both", async (t) => {
  const { service, client } = await start(t);
  const target = await receiver(t);
  await client.post("/webhooks", { body: { name: "mes", url: target.url, subscribed_events: ALL_EVENTS } });
  const producer = await producerOf(t, service);
  const program = { id: UNKNOWN_ID, name: "Gone", status: "active", steps: [{ type: "wait" }] };
  await producer.deliver({ type: "program.put", program });
  const id = producer.nextRunId();
  await producer.deliver({ type: "run.create", id, program_id: UNKNOWN_ID });
  await producer.deliver({ type: "run.start", id });
  await producer.deliver({ type: "program.delete", id: UNKNOWN_ID });
  await producer.deliver({ type: "run.finish", id });
  await target.received(2);
  const events = target.requests.map(({ body }) => JSON.parse(body.toString()));
  const of = (name: string) => events.find(({ event_name }) => event_name === name);
  t.match(of("ProgramStarted"), { data: { program_id: UNKNOWN_ID, program_name: "Gone", robot_id: null } });
  t.match(of("ProgramCompleted"), { data: { program_id: UNKNOWN_ID, program_name: null, robot_id: null } });
});

t.test("tests and retries are one attempt each, made while the request waits", async (t) => {
  const { service, client } = await start(t);
  let status = 500;
  const target = await receiver(t, (_, response) => response.writeHead(status, { "X-A": "b" }).end("answer"));
  const hook = await client.post("/webhooks", {
    body: {
      name: "mes",
      url: target.url,
      subscribed_events: ["ProgramFailed"],
      enabled: false,
      on_failure_mode: "WARN",
    },
  });
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

  // A failed one of a run, in parallel: one attempt at a time.
  await client.patch("/webhooks/{webhook_id}", {
    path: { webhook_id: hook.id },
    body: { enabled: true, max_retries: 0 },
  });
  status = 503;
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
  const slow = await receiver(t, (_, response) => {
    mostOpen = Math.max(mostOpen, ++open);
    setTimeout(() => {
      open--;
      response.writeHead(slow.requests.length < 3 ? 500 : 200).end();
    }, 50);
  });
  await client.patch("/webhooks/{webhook_id}", {
    path: { webhook_id: hook.id },
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
  await client.patch("/webhooks/{webhook_id}", { path: { webhook_id: hook.id }, body: { name: "renamed" } });
  const { event_log } = await client.get("/runs/{run_id}", { path: { run_id: runId } });
  t.same(event_log, run.event_log, "what was noted stays noted, as it was");

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

t.test("a retry takes the place of the automatic attempts that are left", async (t) => {
  const { service, client } = await start(t);
  let status = 500;
  const target = await receiver(t, (_, response) => response.writeHead(status).end());
  const hook = await client.post("/webhooks", {
    body: {
      name: "mes",
      url: target.url,
      subscribed_events: ["ProgramFailed"],
      retry_backoff_seconds: 8,
      max_retries: 5,
    },
  });
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

t.test(
  "next_retry_at is told in the pause alone: not while an attempt runs, nor after a crash in a pause",
  async (t) => {
    const first = await start(t);
    // The first attempt is refused, all others are left without an answer.
    const seen = new Set<string | undefined>();
    const target = await receiver(t, ({ path }, response) => {
      if (!seen.has(path)) response.writeHead(500).end();
      seen.add(path);
    });
    const hooks: string[] = [];
    for (const [name, pauseSeconds] of [
      ["short", 1],
      ["long", 8],
    ] as const) {
      const { id } = await first.client.post("/webhooks", {
        body: {
          name,
          url: `${target.url}/${name}`,
          subscribed_events: ["ProgramFailed"],
          retry_backoff_seconds: pauseSeconds,
          delivery_timeout_seconds: 9,
          max_retries: 3,
        },
      });
      hooks.push(id);
    }
    const producer = await producerOf(t, first.service);
    await producer.deliver({ type: "run.fail", id: await createRun(producer), error_message: "collision" });
    type Hook = { path: { webhook_id: string } };
    const [short, long] = hooks.map((id) => ({ path: { webhook_id: id } })) as [Hook, Hook];
    const deliveries = "/webhooks/{webhook_id}/deliveries";
    const [paused] = await first.client.until(deliveries, ([one]) => one?.attempts === 1, long);
    t.match(paused, { status: "pending", next_retry_at: TIME });
    await target.received(3);
    const [running] = await first.client.until(
      deliveries,
      ([one]) => one?.attempts === 1 && one.next_retry_at === null,
      short,
    );
    t.match(running, { status: "pending" });
    await producer.close();
    await first.service.end("SIGKILL");

    const second = await start(t, [], first.service.dataDirectory);
    const path = { delivery_id: paused?.id as string };
    const after = await second.client.get("/webhook-deliveries/{delivery_id}", { path });
    t.match(after, { status: "pending", attempts: 1, next_retry_at: null });
    await target.received(5);
    t.match(await second.client.get(deliveries, long), listOf({ status: "pending", attempts: 1, next_retry_at: null }));
  },
);

t.test("after a restart: all of it is there, and what was pending goes out again", async (t) => {
  const first = await start(t);
  const silent = await receiver(t, () => {});
  const hook = await first.client.post("/webhooks", {
    body: {
      name: "mes",
      url: silent.url,
      subscribed_events: ["ProgramFailed"],
      secret: SECRET,
      delivery_timeout_seconds: 9,
    },
  });
  const producer = await producerOf(t, first.service);
  const runId = await createRun(producer);
  await producer.deliver({ type: "run.fail", id: runId, error_message: "collision" });
  await silent.received(1);
  await producer.close();
  await first.service.end("SIGKILL");
  await silent.close();

  const target = await receiver(t, undefined, silent.port);
  const second = await start(t, [], first.service.dataDirectory);
  t.same(await second.client.get("/webhooks/{webhook_id}", { path: { webhook_id: hook.id } }), hook);
  await target.received(1);
  const run = await second.client.until("/runs/{run_id}", (json) => json.webhook_delivery?.all_ok === true, {
    path: { run_id: runId },
  });
  t.match(run.webhook_deliveries, listOf({ status: "delivered", attempts: 1 }));
  const [again] = target.requests;
  t.equal(again?.headers["webhook-id"], silent.requests[0]?.headers["webhook-id"], "the same event_id");
  t.same(again?.body, silent.requests[0]?.body, "the same bytes");
  verifyWebhook({ secret: SECRET, headers: again?.headers ?? {}, body: again?.body ?? "" });

  // Disabled and deleted meanwhile.
  await target.close();
  const closed = await second.client.post("/webhooks", {
    body: { name: "gone", url: target.url, subscribed_events: ["ProgramFailed"], retry_backoff_seconds: 9 },
  });
  await second.client.patch("/webhooks/{webhook_id}", {
    path: { webhook_id: hook.id },
    body: { retry_backoff_seconds: 9 },
  });
  const again2 = await producerOf(t, second.service);
  const lateRun = await createRun(again2);
  await again2.deliver({ type: "run.fail", id: lateRun, error_message: "collision" });
  await second.client.until(
    "/runs/{run_id}",
    (json) => json.webhook_deliveries?.every((one) => one.attempts === 1) === true,
    { path: { run_id: lateRun } },
  );
  await second.client.patch("/webhooks/{webhook_id}", { path: { webhook_id: hook.id }, body: { enabled: false } });
  await second.client.delete("/webhooks/{webhook_id}", { path: { webhook_id: closed.id } });
  await again2.close();
  t.equal((await second.service.end()).code, 0, "a pause does not hold up the end");
  const third = await start(t, [], first.service.dataDirectory);
  const late = await third.client.until("/runs/{run_id}", (json) => json.webhook_delivery?.pending === 0, {
    path: { run_id: lateRun },
  });
  t.match(
    late.webhook_deliveries?.map((one) => [one.status, one.last_error]),
    listOf(listOf("failed", "the webhook was disabled"), listOf("failed", "the webhook was deleted")),
  );
  t.same(late.webhook_delivery, { delivered: 0, failed: 2, pending: 0, all_ok: false });
  t.equal((await third.service.end()).code, 0);
  const out = execFileSync(process.execPath, ["dist/http/main.js", "check", "--data", first.service.dataDirectory]);
  t.match(out.toString(), /^ok$/m);
});

t.test("a secret is nowhere but in the log's own bytes", async (t) => {
  const { service, client } = await start(t, ["--log-level", "debug"]);
  const target = await receiver(t);
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

const TO = { name: "x", subscribed_events: ["WebhookTest"] satisfies EventName[] };

/** What is said of a URL whose host is an address: when a webhook is made of it, and when one is changed to it. */
async function refusalOf(t: Test, client: ContractClient, url: string): Promise<string> {
  const other = await client.post("/webhooks", { body: { ...TO, url: "http://name.invalid/" } });
  const path = { webhook_id: other.id };
  const made = await client.refusal("post", "/webhooks", 422, "invalid_parameter", { body: { ...TO, url } });
  const asked = { path, body: { url, name: "y" } };
  const changed = await client.refusal("patch", "/webhooks/{webhook_id}", 422, "invalid_parameter", asked);
  for (const { params } of [made, changed]) t.match(params, { field: "url", in: "body", value: url });
  t.equal(changed.message, made.message, url);
  t.same(await client.get("/webhooks/{webhook_id}", { path }), other, "nothing of it is applied");
  return made.message;
}

t.test("the service itself, link-local and the lists are refused as receivers", async (t) => {
  const { service, client } = await start(t, ["--webhook-deny", "127.0.0.9,10.0.0.0/8"]);
  const errorOf = (url: string) => refusalOf(t, client, url);
  t.match(await errorOf(`http://127.0.0.1:${service.port}/webhooks`), /the service itself/);
  t.match(await errorOf(`http://0x7f.1:${service.port}/webhooks`), /the service itself/);
  t.match(await errorOf("http://169.254.169.254/latest/meta-data"), /never allowed/);
  t.match(await errorOf("http://[::ffff:169.254.169.254]/"), /never allowed/);
  t.match(await errorOf("http://127.0.0.9/"), /--webhook-deny/);
  t.match(await errorOf("http://[::ffff:10.1.2.3]/"), /--webhook-deny/);
  const named = await client.post("/webhooks", { body: { ...TO, url: `http://localhost:${service.port}/` } });
  const tested = await client.post("/webhooks/{webhook_id}/test", { path: { webhook_id: named.id } });
  t.match(tested.error, /the service itself/, "a name is judged when it is connected to");
  const external = Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .find(({ internal }) => !internal);
  if (external !== undefined && external.family === "IPv4") {
    t.match(
      await errorOf(`http://${external.address}:${service.port}/`),
      /the service itself/,
      "by its address in the network",
    );
  }
});

t.test(
  "with a list of allowed receivers, others are refused, also in an address that carries an allowed one",
  async (t) => {
    const { client } = await start(t, ["--webhook-allow", "127.0.0.1,10.0.0.0/8"]);
    const target = await receiver(t);
    const errorOf = (url: string) => refusalOf(t, client, url);
    const hook = await client.post("/webhooks", { body: { ...TO, url: target.url } });
    t.equal((await client.post("/webhooks/{webhook_id}/test", { path: { webhook_id: hook.id } })).error, null);
    t.match(await errorOf("http://127.0.0.2/"), /--webhook-allow/);
    t.match(await errorOf("http://[2606:4700::5efe:a00:1]/"), /--webhook-allow/);
  },
);

t.test("what GET gave, with one field changed, can be sent back; a POST takes null as absent", async (t) => {
  const { client } = await start(t);
  const made = await client.post("/webhooks", {
    body: {
      ...{ name: "mes", url: "http://10.0.0.1/hook", subscribed_events: ["ProgramCompleted"], secret: SECRET },
      ...{ on_failure_mode: null, enabled: null, max_retries: null },
      ...{ delivery_timeout_seconds: null, retry_backoff_seconds: null },
    },
  });
  t.match(made, { on_failure_mode: "IGNORE", enabled: true, delivery_timeout_seconds: 3, max_retries: 3 });
  t.match(made, { retry_backoff_seconds: 1, has_secret: true });
  const path = { webhook_id: made.id };
  const got = await client.get("/webhooks/{webhook_id}", { path });
  const changed = await client.patch("/webhooks/{webhook_id}", { path, body: { ...got, max_retries: 0 } });
  t.same(changed, { ...got, max_retries: 0, updated_at: changed.updated_at });
  t.ok(changed.updated_at > got.updated_at);
  const odd = { id: "x", has_secret: false, created_at: "1970-01-01T00:00:00.000000Z", updated_at: 1, name: "other" };
  const renamed = await client.rawJson("PATCH", `/webhooks/${made.id}`, odd);
  t.equal(renamed.status, 200);
  t.match(renamed.json(), { id: made.id, has_secret: true, created_at: made.created_at, name: "other" });
  const unknown = await client.rawJson("PATCH", `/webhooks/${made.id}`, { ...got, name: "z", has_secrets: true });
  t.equal(unknown.status, 422);
  t.match(unknown.json(), { code: "invalid_parameter", params: { field: "has_secrets" } });
  t.match(await client.get("/webhooks/{webhook_id}", { path }), { name: "other", max_retries: 0 });
});
