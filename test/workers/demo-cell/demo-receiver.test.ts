import { once } from "node:events";
import { connect } from "node:net";
import t from "tap";
import { startDemoReceiver } from "../../../workers/demo-cell/demo-receiver.js";

const ANSWER = "HTTP/1.1 204 No Content\r\n\r\n";

function request(body: string): Buffer {
  const length = Buffer.byteLength(body);
  return Buffer.from(`POST /demo-receiver HTTP/1.1\r\nHost: h\r\ncontent-length: ${length}\r\n\r\n${body}`);
}

t.test("one answer for each request, wherever the bytes are cut", async (t) => {
  const receiver = await startDemoReceiver();
  t.teardown(() => receiver.close());
  const { port } = new URL(receiver.url);
  const bytes = Buffer.concat([request("wörld\r\n\r\n✓"), request(""), request("{}")]);
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
  const { port } = new URL(receiver.url);
  const endless = connect(Number(port), "127.0.0.1");
  endless.on("error", () => {});
  endless.write("x".repeat(64 * 1024));
  await once(endless, "close");
  const idle = connect(Number(port), "127.0.0.1");
  idle.on("error", () => {});
  idle.write(request("{}"));
  await once(idle, "data");
  receiver.close();
  await once(idle, "close");
  t.pass("both are closed");
});
