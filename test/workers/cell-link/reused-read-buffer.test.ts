import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { createRandom } from "../../../core/random.js";
import { readInto } from "../../../workers/cell-link/reused-read-buffer.js";

const BUFFER_BYTES = 64 * 1024;
const directory = mkdtempSync(join(tmpdir(), "reused-read-buffer-"));
t.teardown(() => rmSync(directory, { recursive: true }));

const LISTENING = { "a Unix socket": { path: join(directory, "socket") }, TCP: { host: "127.0.0.1", port: 0 } };

for (const [name, where] of Object.entries(LISTENING)) {
  t.test(`over ${name} every chunk lies in the one buffer, and both directions work to their ends`, async (t) => {
    const buffer = Buffer.alloc(BUFFER_BYTES);
    const sent = createRandom(3).bytes(5_000_000);
    const received: Buffer[] = [];
    let others = 0;
    let whilePaused = 0;
    let accepted: Socket | undefined;
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
      const reading = readInto(buffer, socket);
      accepted = reading;
      let pauses = 0;
      reading.on("data", (chunk) => {
        if (chunk.buffer !== buffer.buffer) others++;
        if (reading.isPaused()) whilePaused++;
        received.push(Buffer.from(chunk));
        // What the system holds meanwhile comes later, none of it twice.
        if (pauses++ % 10 === 0) {
          reading.pause();
          setImmediate(() => reading.resume());
        }
      });
      reading.on("end", () => {
        reading.write("half of the answer, ");
        reading.end("and the rest");
      });
    });
    server.listen(where);
    await once(server, "listening");
    const address = server.address();
    const client =
      typeof address === "string" ? connect({ path: address }) : connect({ port: (address as { port: number }).port });
    let answer = "";
    client.setEncoding("utf8").on("data", (text: string) => {
      answer += text;
    });
    client.end(sent);
    await once(client, "close");
    t.ok(Buffer.concat(received).equals(sent), "all bytes, in order");
    t.equal(others, 0, "chunks elsewhere");
    t.equal(whilePaused, 0, "chunks while it was paused");
    t.equal(answer, "half of the answer, and the rest");
    // The server counts its connections by the sockets that it made.
    await new Promise((resolve) => server.close(resolve));
    t.equal(accepted?.destroyed, true);
  });
}

t.test("a connection that breaks closes, and the server can end", async (t) => {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true });
  server.listen({ path: join(directory, "breaks") });
  await once(server, "listening");
  const client = connect({ path: join(directory, "breaks") });
  const [socket] = (await once(server, "connection")) as [Socket];
  const reading = readInto(Buffer.alloc(BUFFER_BYTES), socket);
  const closed = new Promise((resolve) => reading.on("close", resolve));
  reading.on("error", ({ message }) => t.match(message, /EPIPE|ECONNRESET/));
  reading.resume();
  client.destroy();
  reading.write("to nobody");
  reading.end();
  await closed;
  await new Promise((resolve) => server.close(resolve));
  t.pass("it closed");
});
