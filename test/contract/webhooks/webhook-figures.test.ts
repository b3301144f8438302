import t from "tap";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { completedRun, producerOf, start, subscribe, TIME } from "../../helpers/webhooks/announcing-cell.js";
import { receiverFor } from "../../helpers/webhooks/receiver.js";

t.test("deliveries by state and event, and what a webhook says of them, also after a kill", async (t) => {
  const directory = temporaryDirectory(t);
  const first = await start(t, [], directory);
  let refuses = false;
  const target = await receiverFor(t, (_, response) => response.writeHead(refuses ? 503 : 204).end());
  const hook = await subscribe(first.client, target.url, ["ProgramStarted", "ProgramCompleted"], { max_retries: 0 });
  const none = { deliveries_24h: { delivered: 0, failed: 0 }, last_success_at: null, last_failure_at: null };
  t.match(hook, { ...none, last_error: null });
  const path = { webhook_id: hook.id };
  const producer = await producerOf(t, first.service);
  await completedRun(producer);
  const isSettled = (count: number) => (page: readonly { status: string }[]) =>
    page.length === count && page.every(({ status }) => status !== "pending");
  await first.client.until("/webhooks/{webhook_id}/deliveries", isSettled(2), { path });
  refuses = true;
  await completedRun(producer);
  await first.client.until("/webhooks/{webhook_id}/deliveries", isSettled(4), { path });
  const expected = {
    ...{ deliveries_24h: { delivered: 2, failed: 2 }, last_success_at: TIME, last_failure_at: TIME },
    last_error: "the receiver answered 503",
  };
  const told = await first.client.get("/webhooks/{webhook_id}", { path });
  t.match(told, expected);
  const list = (query: object) => first.client.get("/webhooks/{webhook_id}/deliveries", { path, query });
  const all = await list({});
  for (const status of ["pending", "delivered", "failed", "exhausted"] as const) {
    for (const event_name of ["ProgramStarted", "ProgramCompleted", "WebhookTest", undefined] as const) {
      const query = { status, ...(event_name !== undefined && { event_name }) };
      const wanted = all.filter((one) => one.status === status && (event_name ?? one.event_name) === one.event_name);
      t.same(await list(query), wanted, JSON.stringify(query));
    }
  }
  const [newest] = await list({ status: "failed" });
  const before = await list({ status: "failed", before: String(newest?.created_at), limit: 1 });
  t.same(
    before.map(({ event_name }) => event_name),
    ["ProgramStarted"],
    "with the mark of the page before",
  );
  for (const query of ["status=Failed", "status=x", "event_name=programstarted"]) {
    const refused = await first.client.rawRefusal(`/webhooks/${hook.id}/deliveries?${query}`, 422, "invalid_parameter");
    t.match(refused.params, { field: query.split("=")[0], allowed: /^one of / });
  }
  t.same(await first.client.patch("/webhooks/{webhook_id}", { path, body: told }), told, "sent back as it came");
  await producer.close();
  await first.service.end("SIGKILL");
  const second = await start(t, [], directory);
  t.same(await second.client.get("/webhooks/{webhook_id}", { path }), told);
});
