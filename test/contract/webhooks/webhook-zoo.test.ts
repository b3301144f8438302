import t, { type Test } from "tap";
import type { components } from "../../../http/client/interface-types.js";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { resetConnection } from "../../helpers/http/reset-connection.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { rawReceiver } from "../../helpers/webhooks/raw-receiver.js";
import { type Receiver, startReceiver } from "../../helpers/webhooks/receiver.js";

type Run = components["schemas"]["ProgramRunResponse"];
const PROGRAM_ID = "019b76da-a800-7000-8000-000000000001";

async function receiver(t: Test, ...args: Parameters<typeof startReceiver>): Promise<Receiver> {
  const one = await startReceiver(...args);
  t.teardown(() => one.close());
  return one;
}

/** Whose answers are longer than what is kept, or break off. */
const TRUNCATED = ["1 MB", "40 KB of headers", "trickling body"];

t.test(
  "one event, every kind of receiver: each ends as the rules say, the fast one while all slow ones are held",
  async (t) => {
    const service = await ServiceProcess.start({ args: ["serve"] });
    t.teardown(() => service.dispose());
    const client = new ContractClient(t, service.port);

    const held: (() => void)[] = [];
    let onHeld = (): void => {};
    const fast = await receiver(t);
    const slow = await receiver(t, (_, response) => {
      held.push(() => response.writeHead(200).end("late"));
      onHeld();
    });
    const target = await receiver(t);
    const redirecting = await receiver(t, (_, response) => response.writeHead(308, { Location: target.url }).end());
    const failing = await receiver(t, (_, response) => response.writeHead(503).end("busy"));
    const large = await receiver(t, (_, response) => response.end("x".repeat(1024 * 1024)));
    const many = await receiver(t, (_, response) => {
      for (let nth = 0; nth < 40; nth++) response.setHeader(`x-${nth}`, "v".repeat(1000));
      response.end();
    });
    const silent = await rawReceiver(t, (socket) => socket.resume());
    const resetting = await rawReceiver(t, (socket) => socket.once("data", () => resetConnection(socket)));
    const garbage = await rawReceiver(t, (socket) => socket.once("data", () => socket.end("\u0000what?\r\n\r\n")));
    const trickling = await rawReceiver(t, (socket) =>
      socket.once("data", () => {
        // A head that never ends: a byte is no answer.
        socket.write("HTTP/1.1 200 OK\r\nX-A: ");
        const timer = setInterval(() => socket.write("a"), 50);
        socket.on("close", () => clearInterval(timer));
      }),
    );
    const drip = await rawReceiver(t, (socket) =>
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
        const timer = setInterval(() => socket.write("b"), 50);
        socket.on("close", () => clearInterval(timer));
      }),
    );
    const endless = await rawReceiver(t, (socket) =>
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\n");
        const more = (): boolean => socket.write(`X: ${"h".repeat(8000)}\r\n`);
        socket.on("drain", () => {
          while (more());
        });
        while (more());
      }),
    );
    const refusing = await startReceiver();
    await refusing.close();
    const back = await startReceiver();
    await back.close();

    const settings = { max_retries: 0, retry_backoff_seconds: 0 };
    const ids = new Map<string, string>();
    const subscribe = async (name: string, url: string, more: object = {}): Promise<void> => {
      const { id } = await client.post("/webhooks", {
        body: { ...settings, name, url, subscribed_events: ["ProgramFailed"], ...more },
      });
      ids.set(name, id);
    };
    await subscribe("slow", slow.url, { delivery_timeout_seconds: 9 });
    await subscribe("silent", silent, { delivery_timeout_seconds: 1, max_retries: 1 });
    await subscribe("trickling head", trickling, { delivery_timeout_seconds: 1 });
    // Long enough for the first bytes on a busy machine.
    await subscribe("trickling body", drip, { delivery_timeout_seconds: 3 });
    await subscribe("refusing", refusing.url, { max_retries: 2 });
    await subscribe("resetting", resetting);
    await subscribe("redirecting", redirecting.url, { max_retries: 1 });
    await subscribe("failing", failing.url, { max_retries: 3 });
    await subscribe("1 MB", large.url);
    await subscribe("40 KB of headers", many.url);
    await subscribe("headers without end", endless);
    await subscribe("garbage", garbage);
    await subscribe("down and back", back.url, { max_retries: 9, retry_backoff_seconds: 0.5 });
    await subscribe("fast", fast.url);

    const producer = new ProducerClient({ address: { path: service.cellSocketPath }, producer: "cell" });
    t.teardown(() => producer.destroy());
    await producer.welcomed();
    const program = { id: PROGRAM_ID, name: "Disc", status: "active", steps: [{ type: "wait" }] };
    await producer.deliver({ type: "program.put", program });
    const runId = producer.nextRunId();
    await producer.deliver({ type: "run.create", id: runId, program_id: PROGRAM_ID });
    await producer.deliver({ type: "run.fail", id: runId, error_message: "collision" });
    await producer.close();

    // The fast one, of this event and of 50 tests, while the slow one and the silent one are held open.
    if (held.length === 0) {
      await new Promise<void>((resolve) => {
        onHeld = resolve;
      });
    }
    await fast.received(1);
    const oneOf = ({ webhook_deliveries }: Run, name: string) =>
      webhook_deliveries?.find(({ webhook_name }) => webhook_name === name);
    const path = { path: { run_id: runId } };
    await client.until("/runs/{run_id}", (json) => (oneOf(json, "down and back")?.attempts ?? 0) > 0, path);
    const returned = await receiver(t, undefined, back.port);
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        const test = await client.post("/webhooks/{webhook_id}/test", {
          path: { webhook_id: ids.get("fast") as string },
        });
        t.equal(test.delivered, true);
      }),
    );
    const during = await client.until("/runs/{run_id}", (json) => oneOf(json, "fast")?.status === "delivered", path);
    t.equal(oneOf(during, "slow")?.status, "pending", "which is still held");
    t.equal(during.webhook_delivery?.all_ok, false, "nothing failed, or not yet, and something is pending");
    for (const answer of held) answer();

    const run = await client.until("/runs/{run_id}", (json) => json.webhook_delivery?.pending === 0, path);
    t.equal(run.status, "failed");
    t.same(
      run.event_log?.filter(({ event_type }) => /webhook/.test(event_type)),
      [],
      "IGNORE notes nothing",
    );
    const seen = new Map<string, string>();
    for (const one of run.webhook_deliveries ?? []) {
      const detail = await client.get("/webhook-deliveries/{delivery_id}", { path: { delivery_id: one.id } });
      const last = detail.attempt_history[0]!;
      t.equal(detail.attempts, detail.attempt_history.length);
      t.equal(detail.next_retry_at, null);
      t.equal(detail.last_error, last.error);
      t.equal(detail.delivered_at === null, detail.status === "failed");
      const attempts = one.webhook_name === "down and back" ? "n" : detail.attempts;
      seen.set(one.webhook_name, `${detail.status}, ${attempts}, ${last.status_code}, ${last.error}`);
      t.comment(`${one.webhook_name}: ${detail.status} after ${detail.attempts}: ${last.status_code}, ${last.error}`);
      if (one.webhook_name === "1 MB") t.equal(last.response_body, "x".repeat(16_384));
      if (one.webhook_name === "trickling body") t.match(last.response_body, /^b+$/);
      if (one.webhook_name === "40 KB of headers") {
        t.match(last.response_headers, { "x-0": "v".repeat(1000) });
        t.notOk("x-39" in (last.response_headers ?? {}));
      }
      t.equal(last.response_truncated, TRUNCATED.includes(one.webhook_name), one.webhook_name);
      if (one.webhook_name === "slow") t.equal(last.response_body, "late");
    }
    t.same(Object.fromEntries(seen), {
      fast: "delivered, 1, 204, null",
      slow: "delivered, 1, 200, null",
      silent: "failed, 2, null, no answer within 1 s",
      "trickling head": "failed, 1, null, no answer within 1 s",
      "trickling body": "delivered, 1, 200, null",
      refusing: "failed, 3, null, the connection was refused (ECONNREFUSED)",
      resetting: "failed, 1, null, the connection was reset (ECONNRESET)",
      redirecting: "failed, 2, 308, the receiver answered 308: redirects are not followed",
      failing: "failed, 4, 503, the receiver answered 503",
      "1 MB": "delivered, 1, 200, null",
      "40 KB of headers": "delivered, 1, 200, null",
      "headers without end": "failed, 1, null, the answer's headers are too large (UND_ERR_HEADERS_OVERFLOW)",
      garbage: "failed, 1, null, the answer is not HTTP (HPE_INVALID_CONSTANT)",
      "down and back": "delivered, n, 204, null",
    });
    t.equal(target.requests.length, 0, "nobody followed");
    // One event: its id and its bytes are the same for all, in every attempt.
    const runEvents = [fast, slow, redirecting, failing, large, many, returned]
      .flatMap(({ requests }) => requests)
      .filter(({ headers }) => headers["x-service-event"] === "ProgramFailed");
    t.equal(new Set(runEvents.map(({ headers }) => headers["webhook-id"])).size, 1);
    t.equal(new Set(runEvents.map(({ body }) => body.toString())).size, 1);
    t.match(await service.end(), { code: 0 });
  },
);
