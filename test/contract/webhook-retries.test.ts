import type { ServerResponse } from "node:http";
import t from "tap";
import { startReceiver } from "../helpers/receiver.js";
import { ServiceProcess } from "../helpers/service-process.js";
import { WebhookClient } from "../helpers/webhook-client.js";

for (const front of ["uws", "node"]) {
  t.test(`a retry whose client is gone is not begun; one under way is finished (${front})`, async (t) => {
    const service = await ServiceProcess.start({ args: ["serve", "--front", front] });
    t.teardown(() => service.dispose());
    const client = new WebhookClient(t, service.port);
    const open: ServerResponse[] = [];
    let isHeld = false;
    const target = await startReceiver((_, response) => {
      if (isHeld) open.push(response);
      else response.writeHead(500).end();
    });
    t.teardown(() => target.close());
    const hook = await client.expect("POST", "/webhooks", 201, "WebhookResponse", {
      ...{ name: "mes", url: target.url, subscribed_events: ["WebhookTest"], delivery_timeout_seconds: 9 },
    });
    const { delivery_id: id } = await client.expect("POST", `/webhooks/${hook.id}/test`, 200, "TestWebhookResponse");
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
    // Behind it on the same receiver: what the service has of it, it has of that one.
    const untilWaiting = async (count: number): Promise<void> => {
      const line = `\ninspection_webhook_requests_waiting ${count}\n`;
      while (!(await (await fetch(`http://127.0.0.1:${service.port}/metrics`)).text()).includes(line)) {
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    };
    await untilWaiting(2);
    waiting.gone.abort();
    running.gone.abort();
    await untilWaiting(1);
    open.shift()?.writeHead(500).end();
    const after = await client.until(`/webhook-deliveries/${id}`, ({ attempts }) => attempts === 2);
    t.match(after, { status: "failed", last_status_code: 500 }, "recorded although nobody waits");
    isHeld = false;
    const last = await client.expect("POST", `/webhook-deliveries/${id}/retry`, 200, "WebhookDeliveryDetailResponse");
    t.equal(last.attempts, 3, "the one that was taken back was none");
    t.equal(target.requests.length, 3);
  });
}
