import { Ajv2020 } from "ajv/dist/2020.js";
import { Webhook as StandardWebhook } from "standardwebhooks";
import t, { type Test } from "tap";
import { EVENT_SCHEMAS } from "../../../core/webhook/event-schema.js";
import { verifyWebhook } from "../../../core/webhook/verify-webhook.js";
import type { EventName } from "../../../core/webhook/webhook.js";
import { DELIVERY_HEADERS } from "../../../http/openapi/documented-headers.js";
import type { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { type ContractClient, closed } from "../../helpers/http/contract-client.js";
import { listOf } from "../../helpers/list-of.js";
import {
  ALL_EVENTS,
  completedRun,
  createRun,
  PROGRAM_ID,
  producerOf,
  SECRET,
  start,
  subscribe,
  TIME,
  UNKNOWN_ID,
} from "../../helpers/webhooks/announcing-cell.js";
import { type DeliveryPage, deliveryPages } from "../../helpers/webhooks/delivery-pages.js";
import { type ReceivedRequest, type Receiver, receiverFor } from "../../helpers/webhooks/receiver.js";

const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, strictTypes: false, validateFormats: false });
type Ids = Record<"runId" | "failedId" | "cancelledId", string>;

t.test("the events of runs, as the receiver gets them and as the interface shows them", async (t) => {
  const { service, client } = await start(t);
  const target = await receiverFor(t);
  const hook = await subscribe(client, `${target.url}/hook`, ALL_EVENTS, { secret: SECRET });
  await client.post("/webhooks", {
    body: { name: "off", url: target.url, subscribed_events: ALL_EVENTS, enabled: false },
  });
  const producer = await producerOf(t, service);
  const ids = await threeRuns(producer, target);
  const { runId } = ids;
  const completed = comeAsDocumented(t, target.requests, ids);
  t.equal(completed.service_version, (await client.get("/system/version"))["service-version"]);

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

  const deliveries = await arePaged(t, client, hook.id);
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

/** One run of each end, whose five events have come. */
async function threeRuns(producer: ProducerClient, target: Receiver): Promise<Ids> {
  const runId = await completedRun(producer);
  await target.received(2);
  const failedId = await createRun(producer);
  await producer.deliver({ type: "run.fail", id: failedId, error_message: "collision" });
  const cancelledId = producer.nextRunId();
  await producer.deliver({ type: "run.create", id: cancelledId, program_id: PROGRAM_ID });
  await producer.deliver({ type: "run.cancel", id: cancelledId });
  await target.received(5);
  return { runId, failedId, cancelledId };
}

/** @returns the event of the run that completed */
function comeAsDocumented(t: Test, requests: readonly ReceivedRequest[], { runId, failedId, cancelledId }: Ids) {
  const events = requests.map(({ body }) => JSON.parse(body.toString()));
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
  const ofConnection = ["host", "connection", "content-length", "content-type"];
  const documented = DELIVERY_HEADERS.map(({ name }) => String(name).toLowerCase());
  for (const { headers, body } of requests) {
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
  return completed;
}

/** @returns the deliveries of the webhook, newest first */
async function arePaged(t: Test, client: ContractClient, webhook_id: string): Promise<DeliveryPage> {
  const path = { webhook_id };
  const deliveries = await client.until(
    "/webhooks/{webhook_id}/deliveries",
    (json) => json.every((one) => one.status === "delivered"),
    { path },
  );
  await client.get("/webhooks/{webhook_id}/deliveries", { path });
  t.equal(deliveries.length, 5);
  const times = deliveries.map((one) => one.created_at);
  t.same(times, [...times].sort().reverse(), "newest first");
  t.equal(new Set(times).size, 5, "no two share a mark");
  const pages: unknown[] = [];
  for await (const page of deliveryPages(client, webhook_id, 2)) pages.push(...page);
  t.same(pages, deliveries, "paged by before, each once");
  const newest = deliveries[0]?.created_at as string;
  const behind = await client.raw("GET", `/webhooks/${webhook_id}/deliveries?before=${newest.replace("Z", "4Z")}`);
  t.same(behind.json(), deliveries, "before a time behind the newest, though by less than a microsecond");
  return deliveries;
}

t.test("the event of a run whose program was deleted, and had no robot: null for both", async (t) => {
  const { service, client } = await start(t);
  const target = await receiverFor(t);
  await subscribe(client, target.url, ALL_EVENTS);
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
