import { networkInterfaces } from "node:os";
import t, { type Test } from "tap";
import type { EventName } from "../../../core/webhook/webhook.js";
import type { components } from "../../../http/client/interface-types.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { listOf } from "../../helpers/list-of.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { ALL_EVENTS, SECRET, start, TIME, UNKNOWN_ID } from "../../helpers/webhooks/announcing-cell.js";
import { receiverFor } from "../../helpers/webhooks/receiver.js";

interface Fault {
  field: string;
}
type CreateWebhook = components["schemas"]["CreateWebhookRequest"];

const service = await ServiceProcess.startFor(t);

t.test("management: every field, default and rule", async (t) => {
  const client = new ContractClient(t, service.port);
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
  const change = { name: "x", max_retries: 0, enabled: true };
  const changed = await patch(change);
  t.match(changed, { ...full, ...change, has_secret: true, created_at: second.created_at });
  t.ok(changed.updated_at > second.updated_at);
  t.same(await patch({ name: "x" }), changed, "idempotent in effect");
  t.match(await patch({ secret: null }), { has_secret: false });

  await client.delete("/webhooks/{webhook_id}", { path });
  // A second delete succeeds too.
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

t.test("a write with If-Match changes nothing unless it holds", async (t) => {
  const client = new ContractClient(t, service.port);
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
    const allowed = "only *, because If-Match needs a strong ETag, which only files have";
    t.match(refused.json(), { code: "precondition_failed", params: { field: "if-match", allowed } });
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

t.test("a bad body changes nothing, on create and on update", async (t) => {
  const client = new ContractClient(t, service.port);
  const before = (await client.get("/webhooks")).length;
  const good: CreateWebhook = { name: "mes", url: "http://10.0.0.1/hook", subscribed_events: ["ProgramCompleted"] };
  const hook = await client.post("/webhooks", { body: good });
  const path = `/webhooks/${hook.id}`;
  const faults: [object, string[]][] = [
    [{ name: "other", max_retries: 11 }, ["max_retries"]],
    [{ url: "http://10.0.0.2/", enabled: "yes", retry_backoff_seconds: 31 }, ["enabled", "retry_backoff_seconds"]],
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
  const noSuch = await client.rawJson("PATCH", `/webhooks/${UNKNOWN_ID}`, { max_retries: 11 });
  t.match([noSuch.status, noSuch.json()], listOf(422, { code: "invalid_parameter" }), "the body is looked at first");
  t.match(await client.post("/webhooks", { body: { ...good, secret: null } }), {
    has_secret: false,
  });
  const kept = await client.get("/webhooks/{webhook_id}", { path: { webhook_id: hook.id } });
  t.same(kept, hook, "nothing of all that was applied");
  t.equal((await client.get("/webhooks")).length, before + 2);
  t.same((await client.raw("GET", `${path}/deliveries?limit=&before=`)).json(), [], "an empty value is none");
  await client.refusal("get", "/webhooks/{webhook_id}/deliveries", 422, "invalid_parameter", {
    path: { webhook_id: UNKNOWN_ID },
    query: { limit: 0 },
  });
});

const TO = { name: "x", subscribed_events: ["WebhookTest"] satisfies EventName[] };

/** The refusal of a URL whose host is an address: for a new webhook, and for one that is changed to it. */
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
  t.match(await errorOf("http://[::ffff:169.254.169.254]/"), /never allowed/);
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
    const target = await receiverFor(t);
    const errorOf = (url: string) => refusalOf(t, client, url);
    const hook = await client.post("/webhooks", { body: { ...TO, url: target.url } });
    t.equal((await client.post("/webhooks/{webhook_id}/test", { path: { webhook_id: hook.id } })).error, null);
    t.match(await errorOf("http://[2606:4700::5efe:a00:1]/"), /--webhook-allow/);
  },
);
