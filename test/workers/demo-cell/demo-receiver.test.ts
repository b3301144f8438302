import { once } from "node:events";
import { connect } from "node:net";
import t from "tap";
import { signatureHeaders } from "../../../core/webhook/webhook-signature.js";
import { startDemoReceiver } from "../../../workers/demo-cell/demo-receiver.js";

const ANSWER = "HTTP/1.1 204 No Content\r\n\r\n";

/** An event in the body, sent with this signature. */
function request(body: string, secret: string): Buffer {
  const length = Buffer.byteLength(body);
  const signed = Object.entries(signatureHeaders(secret, "one", Math.floor(Date.now() / 1000), Buffer.from(body)));
  const head = ["POST /demo-receiver HTTP/1.1", "Host: h", ...signed.map((header) => header.join(": "))].join("\r\n");
  return Buffer.from(`${head}\r\ncontent-length: ${length}\r\n\r\n${body}`);
}

t.test("one answer for each request, wherever the bytes are cut", async (t) => {
  const receiver = await startDemoReceiver();
  t.teardown(() => receiver.close());
  const secret = String(receiver.signed.secret);
  const { port } = new URL(receiver.signed.url);
  const bytes = Buffer.concat(["wörld\r\n\r\n✓", "", "{}"].map((body) => request(body, secret)));
  for (const size of [1, 2, 7, 64, bytes.length]) {
    const socket = connect(Number(port), "127.0.0.1").setNoDelay();
    let answers = "";
    socket.on("data", (chunk: Buffer) => {
      answers += chunk.toString();
      if (answers.length >= 3 * ANSWER.length) socket.end();
    });
    for (let at = 0; at < bytes.length; at += size) {
      await new Promise((resolve) => socket.write(bytes.subarray(at, at + size), resolve));
    }
    await once(socket, "close");
    t.equal(answers, ANSWER.repeat(3), `in pieces of ${size}`);
  }
});

t.test("a head without an end is cut off, and closing ends what is open", async (t) => {
  const receiver = await startDemoReceiver();
  const { port } = new URL(receiver.signed.url);
  const endless = connect(Number(port), "127.0.0.1");
  endless.on("error", () => {});
  endless.write("x".repeat(64 * 1024));
  await once(endless, "close");
  const idle = connect(Number(port), "127.0.0.1");
  idle.on("error", () => {});
  idle.write(request("{}", "a"));
  await once(idle, "data");
  receiver.close();
  await once(idle, "close");
  t.pass("both are closed");
});

t.test("a wrong signature is refused; busy takes the second attempt of an event, down the fifth", async (t) => {
  const receiver = await startDemoReceiver();
  t.teardown(() => receiver.close());
  const post = async (url: string, headers: Record<string, string>) =>
    (await fetch(url, { method: "POST", body: "{}", headers })).status;
  const signed = (secret: string) => signatureHeaders(secret, "one", Math.floor(Date.now() / 1000), Buffer.from("{}"));
  t.equal(await post(receiver.signed.url, signed(String(receiver.signed.secret))), 204);
  t.equal(await post(receiver.signed.url, signed("another")), 401);
  t.equal(await post(receiver.signed.url, {}), 401);
  const attempts = async (url: string, event: string, count: number): Promise<number[]> => {
    const statuses: number[] = [];
    for (let n = 0; n < count; n++) statuses.push(await post(url, { "webhook-id": event }));
    return statuses;
  };
  t.same(await attempts(receiver.busy.url, "one", 3), [503, 204, 204]);
  t.same(await attempts(receiver.busy.url, "two", 2), [503, 204], "each event for itself");
  t.same(await attempts(receiver.down.url, "one", 5), [503, 503, 503, 503, 204]);
});
