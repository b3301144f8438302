import type { ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import t from "tap";
import type { components } from "../../../http/client/interface-types.js";
import type { ContractClient } from "../../helpers/http/contract-client.js";
import { listOf } from "../../helpers/list-of.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import {
  completedRun,
  createRun,
  producerOf,
  start,
  subscribe,
  UNKNOWN_ID,
} from "../../helpers/webhooks/announcing-cell.js";
import { type ReceivedRequest, receiverFor } from "../../helpers/webhooks/receiver.js";

type Body = components["schemas"]["ResendRequest"];
type Deliveries = components["schemas"]["WebhookDeliveryResponseList"];
const LONG_AGO = "2020-01-01T00:00:00Z";
const idsOf = (requests: readonly ReceivedRequest[]) => requests.map(({ headers }) => String(headers["webhook-id"]));

async function resent(client: ContractClient, webhookId: string, body: Partial<Body> = {}) {
  const path = { webhook_id: webhookId };
  const all = { since: LONG_AGO, per_second: 1000, ...body };
  const { resend_id, deliveries } = await client.post("/webhooks/{webhook_id}/resend", { path, body: all });
  const done = await client.until("/webhooks/{webhook_id}/resends/{resend_id}", ({ state }) => state !== "running", {
    path: { ...path, resend_id },
  });
  return { resend_id, deliveries, done };
}

const settled = (client: ContractClient, webhookId: string, count: number): Promise<Deliveries> =>
  client.until(
    "/webhooks/{webhook_id}/deliveries",
    (page) => page.length === count && page.every(({ status }) => status !== "pending"),
    { path: { webhook_id: webhookId } },
  );

/** Bodies by the id of their event. */
const bodiesOf = (requests: readonly ReceivedRequest[]): Map<string, string> =>
  new Map(requests.map(({ headers, body }) => [String(headers["webhook-id"]), body.toString()]));

t.test("failed deliveries go out again, oldest first, with the same bytes", async (t) => {
  const { service, client } = await start(t);
  let status = 503;
  const target = await receiverFor(t, (_, response) => response.writeHead(status).end());
  const { id } = await subscribe(client, target.url, ["ProgramStarted", "ProgramCompleted"], { max_retries: 0 });
  const path = { webhook_id: id };
  const producer = await producerOf(t, service);
  for (let run = 0; run < 3; run++) await completedRun(producer);
  const failed = (await settled(client, id, 6)).toReversed();
  const first = target.requests.splice(0);
  status = 204;
  // So slowly that they also arrive in the order in which they begin.
  const all = await resent(client, id, { per_second: 5 });
  t.same(all.done, { deliveries: 6, attempted: 6, delivered: 6, failed: 0, state: "done" });
  t.equal(all.deliveries, 6);
  t.same(
    idsOf(target.requests),
    failed.map(({ payload }) => payload.event_id),
    "oldest first",
  );
  const bodyOf = bodiesOf(first);
  for (const { headers, body } of target.requests) t.equal(body.toString(), bodyOf.get(String(headers["webhook-id"])));
  t.ok((await settled(client, id, 6)).every((one) => one.status === "delivered" && one.attempts === 2));

  status = 503;
  const some = await resent(client, id, { statuses: ["delivered"], event_names: ["ProgramCompleted"] });
  t.match(some.done, { deliveries: 3, attempted: 3, delivered: 0, failed: 3 });
  const now = (await settled(client, id, 6)).toReversed();
  t.same(
    now.map((one) => one.status),
    ["delivered", "failed", "delivered", "failed", "delivered", "failed"],
  );
  status = 204;
  const [, second] = now.filter((one) => one.status === "failed");
  const until = await resent(client, id, { until: String(second?.created_at) });
  t.equal(until.deliveries, 1, "before that time");
  const since = await resent(client, id, { since: String(second?.created_at) });
  t.equal(since.deliveries, 2, "from that time on");

  t.same(
    await client.get("/webhooks/{webhook_id}/resends/{resend_id}", { path: { ...path, resend_id: all.resend_id } }),
    all.done,
  );
});

t.test("a resend of nothing, with wrong fields, or of unknown ids is refused", async (t) => {
  const { client } = await start(t);
  const { id } = await subscribe(client, "http://127.0.0.1:9/", ["ProgramFailed"]);
  const path = { webhook_id: id };
  const nothing = await client.refusal("post", "/webhooks/{webhook_id}/resend", 422, "invalid_parameter", {
    path,
    body: { since: LONG_AGO },
  });
  t.match(nothing.message, /at least one delivery matches/);
  t.equal(nothing.params.field, "", "any of the filters may be the wrong one");
  const wrong: [object, string][] = [
    [{}, "since"],
    [{ since: "yesterday" }, "since"],
    [{ since: LONG_AGO, until: LONG_AGO }, "until"],
    [{ since: LONG_AGO, statuses: [] }, "statuses"],
    [{ since: LONG_AGO, statuses: ["pending"] }, "statuses/0"],
    [{ since: LONG_AGO, event_names: ["x"] }, "event_names/0"],
    [{ since: LONG_AGO, per_second: 0 }, "per_second"],
    [{ since: LONG_AGO, per_second: 1001 }, "per_second"],
  ];
  for (const [body, field] of wrong) {
    const refused = await client.rawJson("POST", `/webhooks/${id}/resend`, body);
    t.match([refused.status, refused.json()], listOf(422, { code: "invalid_parameter", params: { field } }), field);
  }
  const unknown = { webhook_id: UNKNOWN_ID };
  await client.refusal("post", "/webhooks/{webhook_id}/resend", 404, "webhook_not_found", {
    path: unknown,
    body: { since: LONG_AGO },
  });
  for (const method of ["get", "delete"] as const) {
    const resends = "/webhooks/{webhook_id}/resends/{resend_id}";
    await client.refusal(method, resends, 404, "webhook_not_found", { path: { ...unknown, resend_id: UNKNOWN_ID } });
    await client.refusal(method, resends, 404, "resend_not_found", { path: { ...path, resend_id: UNKNOWN_ID } });
  }
});

t.test("one at a time; a cancelled one stops, and so does that of a deleted webhook", async (t) => {
  const { service, client } = await start(t);
  const target = await receiverFor(t, (_, response) => response.writeHead(503).end());
  const { id } = await subscribe(client, target.url, ["ProgramCompleted"], { max_retries: 0 });
  const path = { webhook_id: id };
  const producer = await producerOf(t, service);
  for (let run = 0; run < 4; run++) await completedRun(producer);
  await settled(client, id, 4);
  target.requests.length = 0;
  const slow = { path, body: { since: LONG_AGO, per_second: 1 } };
  const { resend_id } = await client.post("/webhooks/{webhook_id}/resend", slow);
  const refused = await client.refusal("post", "/webhooks/{webhook_id}/resend", 409, "resend_in_progress", slow);
  t.match(refused.params, { resend_id });
  await target.received(1);
  const resend = { path: { ...path, resend_id } };
  await client.delete("/webhooks/{webhook_id}/resends/{resend_id}", resend);
  await client.delete("/webhooks/{webhook_id}/resends/{resend_id}", resend);
  const cancelled = await client.get("/webhooks/{webhook_id}/resends/{resend_id}", resend);
  t.match(cancelled, { deliveries: 4, state: "cancelled" });
  t.ok(cancelled.attempted < 4);
  const begun = target.requests.length;
  // It takes as long as the cancelled one would, so that attempts of both would be there. A disabled webhook is resent to as well.
  await client.patch("/webhooks/{webhook_id}", { path, body: { enabled: false } });
  t.match((await resent(client, id, { per_second: 1 })).done, { attempted: 4, state: "done" });
  t.equal(target.requests.length, begun + 4, "nothing more of the cancelled one");
  const next = await client.post("/webhooks/{webhook_id}/resend", slow);
  const before = target.requests.length;
  await target.received(before + 1);
  await client.delete("/webhooks/{webhook_id}", { path });
  const other = { path: { ...path, resend_id: next.resend_id } };
  t.match(await client.get("/webhooks/{webhook_id}/resends/{resend_id}", other), { state: "cancelled" });
});

t.test("a cancel takes back attempts that wait for a place, and counts those that had begun", async (t) => {
  const { service, client } = await start(t);
  let held: ServerResponse[] | undefined;
  const target = await receiverFor(t, (_, response) => {
    if (held === undefined) response.writeHead(503).end();
    else held.push(response);
  });
  const events = { subscribed_events: ["ProgramCompleted" as const], max_retries: 0, delivery_timeout_seconds: 10 };
  const { id } = await client.post("/webhooks", { body: { name: "mes", url: target.url, ...events } });
  const path = { webhook_id: id };
  const producer = await producerOf(t, service);
  for (let run = 0; run < 12; run++) await completedRun(producer);
  const failed = await settled(client, id, 12);
  target.requests.length = 0;
  held = [];
  const body = { since: LONG_AGO, per_second: 1000 };
  const cancelledWhen = async (isReady: () => Promise<void>) => {
    const { resend_id } = await client.post("/webhooks/{webhook_id}/resend", { path, body });
    await isReady();
    const resend = { path: { ...path, resend_id } };
    await client.delete("/webhooks/{webhook_id}/resends/{resend_id}", resend);
    return resend;
  };
  const answerAll = (): void => {
    for (const response of held?.splice(0) ?? []) response.writeHead(204).end();
  };
  const allWait = async (): Promise<void> => {
    const isSo = /^inspection_webhook_requests_waiting 16$/m;
    for (let looks = 0; looks < 10_000; looks++) {
      if (isSo.test((await client.raw("GET", "/metrics")).body.toString())) return;
      await pause(10);
    }
    throw new Error("no 16 attempts wait");
  };
  // Retries have all places of the receiver. So the eight of the resend wait.
  const retries = failed.slice(0, 8).map((one) => client.rawJson("POST", `/webhook-deliveries/${one.id}/retry`, {}));
  await target.received(8);
  const waited = await cancelledWhen(allWait);
  answerAll();
  t.ok((await Promise.all(retries)).every(({ status }) => status === 200));
  t.match(await client.get("/webhooks/{webhook_id}/resends/{resend_id}", waited), { attempted: 0, state: "cancelled" });
  await client.until("/webhooks/{webhook_id}/deliveries", (page) => page.every((one) => one.status !== "pending"), {
    path,
  });
  t.equal(target.requests.length, 8, "none of the resend");

  const begun = await cancelledWhen(() => target.received(12));
  t.match(await client.get("/webhooks/{webhook_id}/resends/{resend_id}", begun), { attempted: 0, state: "cancelled" });
  answerAll();
  const counted = await client.until(
    "/webhooks/{webhook_id}/resends/{resend_id}",
    ({ attempted }) => attempted === 4,
    begun,
  );
  t.same(counted, { deliveries: 4, attempted: 4, delivered: 4, failed: 0, state: "cancelled" });
});

t.test("of two that are asked for at once one begins; a cancel that was answered holds after a kill", async (t) => {
  const directory = temporaryDirectory(t);
  const { service, client } = await start(t, [], directory);
  const target = await receiverFor(t, (_, response) => response.writeHead(503).end());
  const { id } = await subscribe(client, target.url, ["ProgramCompleted"], { max_retries: 0 });
  const producer = await producerOf(t, service);
  for (let run = 0; run < 4; run++) await completedRun(producer);
  await settled(client, id, 4);
  const ask = () => client.rawJson("POST", `/webhooks/${id}/resend`, { since: LONG_AGO, per_second: 1 });
  const answers = await Promise.all([ask(), ask(), ask()]);
  t.same(answers.map(({ status }) => status).sort(), [202, 409, 409]);
  const begun = answers.find(({ status }) => status === 202)?.json() as { resend_id: string };
  const resend = { path: { webhook_id: id, resend_id: begun.resend_id } };
  await client.delete("/webhooks/{webhook_id}/resends/{resend_id}", resend);
  await service.end("SIGKILL");
  const second = await start(t, [], directory);
  const after = await second.client.get("/webhooks/{webhook_id}/resends/{resend_id}", resend);
  t.match(after, { state: "cancelled" });
});

t.test("missed events: of a webhook that is new or was disabled, from the runs themselves", async (t) => {
  const directory = temporaryDirectory(t);
  const first = await start(t, [], directory);
  const { client } = first;
  const [early, late] = [await receiverFor(t), await receiverFor(t)];
  const producer = await producerOf(t, first.service);
  const ended = async (): Promise<string> => {
    const run_id = await completedRun(producer);
    await client.until("/runs/{run_id}", ({ status }) => status === "completed", { path: { run_id } });
    return run_id;
  };
  // No webhook is told of this one.
  const untold = await ended();
  const told = await client.post("/webhooks", {
    body: { name: "told", url: early.url, subscribed_events: ["ProgramStarted", "ProgramCompleted"] },
  });
  const stored = await ended();
  const failed = await createRun(producer);
  await producer.deliver({ type: "run.fail", id: failed, error_message: "collision" });
  const running = await createRun(producer);
  // Started and completed of the second run, started of the third and the fourth.
  await settled(client, told.id, 4);
  const fresh = await client.post("/webhooks", {
    body: { name: "new", url: late.url, subscribed_events: ["ProgramStarted", "ProgramCompleted", "ProgramFailed"] },
  });
  const path = { webhook_id: fresh.id };
  t.match((await resent(client, fresh.id, { statuses: ["failed", "missed"] })).done, {
    ...{ deliveries: 7, attempted: 7, delivered: 7, failed: 0 },
  });
  const events = late.requests.map(({ body }) => JSON.parse(body.toString()));
  const expected = [
    ...["ProgramStarted", "ProgramCompleted"].map((name) => [name, untold]),
    ...["ProgramStarted", "ProgramCompleted"].map((name) => [name, stored]),
    ...["ProgramStarted", "ProgramFailed"].map((name) => [name, failed]),
    ["ProgramStarted", running],
  ];
  t.same(events.map(({ event_name, data }) => [event_name, data.run_id]).sort(), expected.sort());
  const same = bodiesOf(early.requests);
  for (const [id, body] of bodiesOf(late.requests))
    if (same.has(id)) t.equal(body, same.get(id), "the event that another webhook was told of");
  t.equal(idsOf(late.requests).filter((id) => same.has(id)).length, 4);
  const made = events.find(({ event_name, data }) => event_name === "ProgramStarted" && data.run_id === untold);
  t.match(made, { schema_version: 3, data: { status: "running", completed_at: null, quality_status: null } });
  const run = await client.get("/runs/{run_id}", { path: { run_id: untold } });
  t.equal(run.webhook_deliveries?.length, 2, "the run shows them");
  t.match(run.webhook_delivery, { delivered: 2, all_ok: true });
  const none = { path, body: { since: LONG_AGO, statuses: ["missed" as const] } };
  await client.refusal("post", "/webhooks/{webhook_id}/resend", 422, "invalid_parameter", none);

  await client.patch("/webhooks/{webhook_id}", { path, body: { enabled: false } });
  await producer.deliver({ type: "run.finish", id: running });
  await client.until("/runs/{run_id}", ({ status }) => status === "completed", { path: { run_id: running } });
  await client.patch("/webhooks/{webhook_id}", { path, body: { enabled: true } });
  t.match((await resent(client, fresh.id, { statuses: ["missed"] })).done, { deliveries: 1, delivered: 1 });
  const last = JSON.parse(String(late.requests.at(-1)?.body));
  t.match(last, { event_name: "ProgramCompleted", data: { run_id: running } });

  const listed = await settled(client, fresh.id, 8);
  await producer.close();
  await first.service.end("SIGKILL");
  const second = await start(t, [], directory);
  t.same(await settled(second.client, fresh.id, 8), listed, "the same after a kill");
  const again = await second.client.get("/runs/{run_id}", { path: { run_id: untold } });
  t.same(again.webhook_deliveries, run.webhook_deliveries);
  const sent = late.requests.length;
  t.match((await resent(second.client, fresh.id, { statuses: ["delivered"] })).done, { delivered: 8 });
  const bodies = bodiesOf(late.requests.slice(0, sent));
  for (const [id, body] of bodiesOf(late.requests.slice(sent))) t.equal(body, bodies.get(id), "byte for byte");
  await second.client.refusal("post", "/webhooks/{webhook_id}/resend", 422, "invalid_parameter", none);
});
