import t, { type Test } from "tap";
import { createServiceClock } from "../../../../core/service-clock.js";
import { verifyWebhook } from "../../../../core/webhook/verify-webhook.js";
import { encodeMessagePack } from "../../../../storage/records/message-pack.js";
import { decodeDeliveryBody } from "../../../../storage/records/webhook-record.js";
import { resetConnection } from "../../../helpers/http/reset-connection.js";
import { PAYLOAD, startTestDispatcher } from "../../../helpers/webhooks/dispatcher-harness.js";
import { rawReceiver } from "../../../helpers/webhooks/raw-receiver.js";
import { receiverFor } from "../../../helpers/webhooks/receiver.js";
import { signedBy } from "../../../helpers/webhooks/webhook-fixtures.js";

/** A receiver that answers whatever comes with these bytes. */
function answering(t: Test, text: string): Promise<string> {
  return rawReceiver(t, (socket) => socket.once("data", () => socket.write(text)));
}

t.test("a receiver that takes it gets the frozen bytes with every header", async (t) => {
  const { deliver, end } = startTestDispatcher(t);
  const fine = await receiverFor(t, (_, response) => response.writeHead(202, { "X-Answer": "yes" }).end("thänks"));
  const id = deliver(`${fine.url}/hook/a%20b?x=1&y=`, { signers: signedBy("whsec_YWJjZA=="), eventId: "event-7" });
  const attempt = await end(id);
  t.match(attempt, { attemptNumber: 1, statusCode: 202, responseBody: "thänks", error: null });
  t.equal(attempt.responseHeaders?.["x-answer"], "yes");
  const [request] = fine.requests;
  t.same(request?.body, PAYLOAD);
  t.match(request, {
    method: "POST",
    path: "/hook/a%20b?x=1&y=",
    headers: {
      "content-type": "application/json",
      "user-agent": "inspection-results-service/1.2.3",
      "x-service-event": "ProgramFailed",
      "webhook-id": "event-7",
      "content-length": String(PAYLOAD.length),
    },
  });
  verifyWebhook({ secret: "whsec_YWJjZA==", headers: request?.headers ?? {}, body: PAYLOAD });
  await end(deliver(fine.url));
  t.notOk("x-service-signature" in (fine.requests[1]?.headers ?? {}), "without a secret, no signature");
  t.equal(fine.requests[1]?.path, "/");
});

t.test("statuses: 2xx is success, everything else is not", async (t) => {
  const { deliver, end } = startTestDispatcher(t);
  const target = await receiverFor(t);
  const redirecting = await receiverFor(t, ({ path }, response) => {
    response.writeHead(Number(path.slice(1)), { Location: target.url }).end();
  });
  for (const status of [200, 201, 204, 299]) {
    const attempt = await end(deliver(`${redirecting.url}/${status}`));
    t.match(attempt, { statusCode: status, error: null });
  }
  for (const status of [301, 302, 303, 307, 308]) {
    const attempt = await end(deliver(`${redirecting.url}/${status}`));
    t.match(attempt, { statusCode: status, error: /redirects are not followed/ });
  }
  for (const status of [304, 400, 401, 404, 410, 429, 500, 502, 599]) {
    const attempt = await end(deliver(`${redirecting.url}/${status}`));
    t.match(attempt, { statusCode: status, error: RegExp(`${status}`) });
  }
  t.equal(target.requests.length, 0, "nobody followed");
});

t.test("a large answer is kept up to its bound, and said to be truncated", async (t) => {
  const { deliver, end } = startTestDispatcher(t);
  const large = await receiverFor(t, (_, response) => response.end("x".repeat(1024 * 1024)));
  const attempt = await end(deliver(large.url));
  t.equal(attempt.responseBody, "x".repeat(16_384));
  t.match(attempt, { statusCode: 200, error: null, responseTruncated: true });
  const exact = await receiverFor(t, (_, response) => response.end("x".repeat(16_384)));
  const whole = await end(deliver(exact.url));
  t.match(whole, { responseBody: "x".repeat(16_384), responseTruncated: false });
  const split = await receiverFor(t, (_, response) => response.end(`${"x".repeat(16_383)}€`));
  const halved = await end(deliver(split.url));
  t.match(halved, { responseBody: "x".repeat(16_383), responseTruncated: true }, "no half of a character");
});

t.test("headers are kept up to their bound, and said to be truncated", async (t) => {
  const { deliver, end } = startTestDispatcher(t);
  const head = (more: string) => `HTTP/1.1 200 OK\r\nContent-Length: 2\r\nx-a: ${"v".repeat(8000)}\r\n${more}\r\nok`;
  const cut = await end(deliver(await answering(t, head(`x-b: ${"w".repeat(8400)}\r\nx-c: 1\r\n`))));
  t.match(cut, { statusCode: 200, responseBody: "ok", responseTruncated: true });
  t.same(Object.keys(cut.responseHeaders ?? {}), ["content-length", "x-a"]);
  const whole = await end(deliver(await answering(t, head(`x-b: ${"w".repeat(8000)}\r\nx-c: 1\r\n`))));
  t.equal(whole.responseTruncated, false);
  t.same(Object.keys(whole.responseHeaders ?? {}), ["content-length", "x-a", "x-b", "x-c"]);
});

t.test("headers of any name are kept under keys that can be stored", async (t) => {
  const { deliver, end } = startTestDispatcher(t);
  const head = "HTTP/1.1 200 OK\r\n__proto__: a\r\n__PROTO__: b\r\nconstructor: c\r\nContent-Length: 0\r\n\r\n";
  const attempt = await end(deliver(await answering(t, head)));
  const kept = attempt.responseHeaders ?? {};
  t.same(Object.keys(kept), ["[__proto__]", "constructor", "content-length"]);
  t.match(kept, { "[__proto__]": "a, b", constructor: "c" });
  const { history } = decodeDeliveryBody(encodeMessagePack({ history: [attempt], payload: null }));
  t.same(history[0]?.responseHeaders, kept);
});

t.test("refusing, resetting, closing, garbage, other names: each says what it was", async (t) => {
  const { deliver, end } = startTestDispatcher(t);
  const failures: [string, RegExp][] = [
    // Nothing listens on the port of discard. One that was just closed could be given to the next receiver.
    ["http://127.0.0.1:9/", /refused \(ECONNREFUSED\)/],
    [await rawReceiver(t, (socket) => socket.once("data", () => resetConnection(socket))), /connection was/],
    [await rawReceiver(t, (socket) => socket.once("data", () => socket.end())), /closed before an answer/],
    [await rawReceiver(t, (socket) => socket.once("data", () => socket.end("\x00\xffwhat?\r\n\r\n"))), /not HTTP/],
    [await rawReceiver(t, (socket) => socket.once("data", () => socket.end("SSH-2.0-x\r\n"))), /not HTTP/],
    [await answering(t, "HTTP/1.1 099 Hm\r\n\r\n"), /^the answer is not HTTP/],
    [await answering(t, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"), /^the receiver answered 100/],
    [
      await answering(t, "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"),
      /^the receiver answered with another protocol/,
    ],
    ["http://no-such-host.invalid/", /does not resolve/],
    ["http://127.0.0.1:0/", /./],
  ];
  for (const [url, error] of failures) {
    const attempt = await end(deliver(url));
    t.match(attempt, { statusCode: null, responseBody: null, responseHeaders: null, responseTruncated: false, error });
  }
});

t.test("an answer whose body breaks off or never ends counts by its status", async (t) => {
  const { deliver, end } = startTestDispatcher(t);
  const head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart";
  const broken = await rawReceiver(t, (socket) => socket.once("data", () => socket.end(head)));
  const endless = await rawReceiver(t, (socket) => socket.once("data", () => socket.write(head)));
  for (const [url, timeoutMs] of [
    [broken, 3000],
    [endless, 300],
  ] as const) {
    const attempt = await end(deliver(url, { timeoutMs }));
    t.match(attempt, { statusCode: 200, error: null, responseBody: "part", responseTruncated: true });
  }
});

t.test("the fast one is served while every slow one is held open", async (t) => {
  const { deliver, end, hasEnded } = startTestDispatcher(t);
  let silent = 0;
  let onSilent = (): void => {};
  const url = await rawReceiver(t, () => {
    silent++;
    onSilent();
  });
  const slow = Array.from({ length: 200 }, () => deliver(url, { timeoutMs: 8000 }));
  while (silent < slow.length) {
    await new Promise<void>((resolve) => {
      onSilent = resolve;
    });
  }
  const fast = await receiverFor(t);
  const attempts = await Promise.all(Array.from({ length: 100 }, () => end(deliver(fast.url))));
  t.ok(attempts.every(({ error }) => error === null));
  t.notOk(slow.some(hasEnded), "all slow ones are still open");
  t.comment(`100 delivered beside ${slow.length} that never answer`);
});

t.test("addresses that are never allowed, and the lists", async (t) => {
  const { handle, deliver, end } = startTestDispatcher(t, { deny: ["127.0.0.7/32"] });
  const fine = await receiverFor(t);
  handle.serving(fine.port);
  for (const url of [
    ...[`http://127.0.0.1:${fine.port}/`, `http://localhost:${fine.port}/`, `http://[::ffff:127.0.0.1]:${fine.port}/`],
    ...["http://169.254.169.254/latest/", "http://[fe80::1]/", "http://0.0.0.0/", "http://[::ffff:a9fe:a9fe]/"],
    ...["http://224.0.0.1/", "http://0x7f000007/", "http://2130706439/"],
  ]) {
    const attempt = await end(deliver(url));
    t.match(attempt, { statusCode: null, error: /never allowed|the service itself|denied/ }, url);
  }
  t.equal(fine.requests.length, 0, "nothing was sent");
  const narrow = startTestDispatcher(t, { allow: ["10.0.0.0/8"] });
  t.match(await narrow.end(narrow.deliver(fine.url)), { error: /--webhook-allow/ });
  const wide = startTestDispatcher(t, { allow: ["127.0.0.0/8"] });
  t.match(await wide.end(wide.deliver(fine.url)), { error: null });
});

t.test(
  "attempts have the times of the service clock, which goes on above them; signatures have the wall's",
  async (t) => {
    // A wall clock that is years ahead of this machine's, and stands.
    const wallUs = 1_900_000_000_000_000;
    const clock = createServiceClock(() => wallUs);
    const { deliver, end } = startTestDispatcher(t, {}, clock);
    const fine = await receiverFor(t);
    let lastUs = 0;
    for (let nth = 0; nth < 3; nth++) {
      const emittedUs = clock.tick();
      const attempt = await end(deliver(fine.url, { signers: signedBy("s") }));
      const { startedAtUs, completedAtUs } = attempt;
      t.ok(startedAtUs > emittedUs && completedAtUs > startedAtUs && startedAtUs > lastUs);
      t.ok(completedAtUs < wallUs + 60_000_000, "of that clock");
      t.ok(clock.tick() > completedAtUs, "what is recorded of it is later");
      lastUs = completedAtUs;
    }
    for (const { headers, body } of fine.requests) verifyWebhook({ secret: "s", headers, body });
  },
);
