import type { ServerResponse } from "node:http";
import t from "tap";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { frontsHere } from "../../helpers/http/fronts-here.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { until } from "../../helpers/until.js";
import { subscribe } from "../../helpers/webhooks/announcing-cell.js";
import { receiverFor } from "../../helpers/webhooks/receiver.js";

/** Until so many requests wait for an attempt. */
async function untilWaiting(service: ServiceProcess, count: number): Promise<void> {
  const line = `\ninspection_webhook_requests_waiting ${count}\n`;
  const metrics = async () => (await fetch(`http://127.0.0.1:${service.port}/metrics`)).text();
  await until(line, async () => (await metrics()).includes(line));
}

const fronts = frontsHere(t);
// Side by side: each waits for most of the time that a stop may take, or for the receiver.
t.jobs = 2 * fronts.length;
const options = { buffered: true };

for (const { name, environment } of fronts) {
  t.test(`a retry whose client is gone is not begun; one under way is finished (${name})`, options, async (t) => {
    const service = await ServiceProcess.startFor(t, { args: ["serve"], environment });
    const client = new ContractClient(t, service.port);
    const open: ServerResponse[] = [];
    let isHeld = false;
    const target = await receiverFor(t, (_, response) => {
      if (isHeld) open.push(response);
      else response.writeHead(500).end();
    });
    const hook = await subscribe(client, target.url, ["WebhookTest"], { delivery_timeout_seconds: 9 });
    const { delivery_id: id } = await client.post("/webhooks/{webhook_id}/test", { path: { webhook_id: hook.id } });
    isHeld = true;
    const url = `http://127.0.0.1:${service.port}/webhook-deliveries/${id}/retry`;
    const retry = () => {
      const gone = new AbortController();
      const answer = fetch(url, { method: "POST", signal: gone.signal });
      answer.catch(() => {});
      return { answer, gone };
    };
    const running = retry();
    await target.received(2);
    const waiting = retry();
    // It waits behind the first one on the same receiver. Once the service has it, it has the first one too.
    await untilWaiting(service, 2);
    waiting.gone.abort();
    running.gone.abort();
    await untilWaiting(service, 1);
    open.shift()?.writeHead(500).end();
    const after = await client.until("/webhook-deliveries/{delivery_id}", ({ attempts }) => attempts === 2, {
      path: { delivery_id: id },
    });
    t.match(after, { status: "failed", last_status_code: 500 }, "recorded although nobody waits");
    isHeld = false;
    const last = await client.post("/webhook-deliveries/{delivery_id}/retry", { path: { delivery_id: id } });
    t.equal(last.attempts, 3, "the one that was taken back was none");
    t.equal(target.requests.length, 3);
  });
}

for (const { name, environment } of fronts) {
  t.test(
    `at a stop: an attempt that ends in time is told, and whoever waits for another is too (${name})`,
    options,
    async (t) => {
      const service = await ServiceProcess.startFor(t, { args: ["serve"], environment });
      const client = new ContractClient(t, service.port);
      const held: ServerResponse[] = [];
      let isSilent = false;
      const silent = await receiverFor(t, (_, response) => {
        if (!isSilent) response.writeHead(500).end();
      });
      const slow = await receiverFor(t, (_, response) => held.push(response));
      const hookOf = async (name: string, url: string): Promise<string> => {
        const hook = await client.post("/webhooks", {
          body: { name, url, subscribed_events: ["WebhookTest"], delivery_timeout_seconds: 9 },
        });
        return hook.id;
      };
      const [silentHook, slowHook] = [await hookOf("silent", silent.url), await hookOf("slow", slow.url)];
      const failed = await client.post("/webhooks/{webhook_id}/test", { path: { webhook_id: silentHook } });
      isSilent = true;
      const retry = () =>
        client.answer("post", "/webhook-deliveries/{delivery_id}/retry", { path: { delivery_id: failed.delivery_id } });
      const running = retry();
      await silent.received(2);
      const waiting = retry();
      const test = client.answer("post", "/webhooks/{webhook_id}/test", { path: { webhook_id: slowHook } });
      await slow.received(1);
      await untilWaiting(service, 3);
      const ended = service.end("SIGTERM");
      const refusal = { status: 503, error: { code: "unavailable", message: "the service is stopping" } };
      t.match(await waiting, refusal, "its attempt is not begun: at once");
      held[0]?.writeHead(204).end();
      t.match(await test, { status: 200, data: { delivered: true, status_code: 204 } });
      t.match(await running, refusal, "cut short before its time-out, and before its connection");
      t.match(await ended, { code: 0, signal: null });
      t.equal(silent.requests.length, 2);
    },
  );
}
