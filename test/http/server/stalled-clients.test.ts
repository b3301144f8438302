import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { downloadReply, type Reply, type StreamBody } from "../../../http/replies/reply.js";
import { UnacknowledgedBytes } from "../../../http/server/unacknowledged-bytes.js";
import { onEveryFront, until } from "../../helpers/http/handler-server.js";
import { RawConnection } from "../../helpers/http/raw-http.js";
import { ManualTimers } from "../../helpers/recorder/manual-timers.js";
import { sized } from "../../helpers/test-size.js";

const GET = (path: string) => `GET ${path} HTTP/1.1\r\nHost: cell:8000\r\n\r\n`;
const MB = 1_000_000;
/** Longer than a system delays an acknowledgement. */
const SETTLED_MS = 250;
/** How long the slow client is served: in full size longer than two stall limits. */
const SERVED_MS = sized(76_000, 132_000);
/** Between two looks at clients that do not take their answers. */
const LOOK_MS = 4_000;
/** When a client that takes nothing takes some after all: late enough for a cut 60 s after the start to be told from one 60 s after this. */
const TAKES_AT_MS = 8 * LOOK_MS;

/** Bytes without end; counts what was read of them, and tells when nobody wants more. */
function endless() {
  const seen = { readBytes: 0, isReleased: false };
  const body: StreamBody = {
    totalBytes: 2_000 * MB,
    async read(position, lengthBytes) {
      seen.readBytes = position + lengthBytes;
      return new Uint8Array(lengthBytes);
    },
    release() {
      seen.isReleased = true;
    },
  };
  return { seen, reply: (): Reply => downloadReply(body, "application/octet-stream", "endless.bin") };
}

/** Asks, and reads nothing but by `socket.read`. */
async function ask(port: number, path: string): Promise<RawConnection> {
  const connection = await RawConnection.open(port);
  connection.socket.on("readable", () => {});
  connection.socket.pause();
  connection.send(GET(path));
  return connection;
}

/** Until a figure has stayed the same for a thousand turns of the event loop. */
async function standstill(figure: () => number): Promise<void> {
  for (let last = Number.NaN; figure() !== last; ) {
    last = figure();
    for (let turns = 0; turns < 1_000; turns++) await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Bytes that the service has sent, and of whose arrival its system has not been told. */
async function waiting(port: number, { socket }: RawConnection): Promise<number | undefined> {
  const table = new UnacknowledgedBytes();
  await table.refresh();
  return table.of({ localPort: port, remoteAddress: socket.localAddress, remotePort: socket.localPort });
}

/**
 * Waits until the waiting bytes stay the same for so long that no acknowledgement is on its way any more. It does not count looks: a look is slow
 * while the system has many closed connections. After 8 s in which nothing is sent, uWebSockets.js closes the connection itself.
 */
async function settled(port: number, client: RawConnection): Promise<void> {
  let last = await waiting(port, client);
  for (let sinceMs = performance.now(); performance.now() - sinceMs < SETTLED_MS; ) {
    const now = await waiting(port, client);
    if (now !== last) sinceMs = performance.now();
    last = now;
  }
}

/** Takes so many bytes. */
async function take({ socket }: RawConnection, bytes: number): Promise<void> {
  for (let taken = 0; taken < bytes; ) {
    await until(() => socket.readableLength > 0);
    taken += (socket.read(Math.min(socket.readableLength, bytes - taken)) as Buffer | null)?.length ?? 0;
  }
}

onEveryFront(
  t,
  "a client that takes nothing for 60 s is cut then, one that goes on taking some is not",
  async (t, serve) => {
    const clock = new ManualTimers();
    const stalled = endless();
    const slow = endless();
    const { port } = await serve(t, { "/stalled": stalled.reply, "/slow": slow.reply }, { stallClock: clock });
    const slowClient = await ask(port, "/slow");
    const stalledClient = await ask(port, "/stalled");
    t.teardown(async () => {
      slowClient.close();
      stalledClient.close();
    });
    await until(() => stalled.seen.readBytes > 0 && slow.seen.readBytes > 0);
    // Time passes only after the buffers of both sides are full.
    await standstill(() => stalled.seen.readBytes + slow.seen.readBytes);
    let cutAfterMs = 0;
    for (let passedMs = LOOK_MS; passedMs <= SERVED_MS; passedMs += LOOK_MS) {
      // Less than what the system tells a server of, which is a third of its buffer; but the other side must have learned of it.
      const before = await waiting(port, slowClient);
      do await take(slowClient, 200_000);
      while ((await waiting(port, slowClient)) === before);
      clock.advance(LOOK_MS);
      // A look is over when the next one is due.
      await until(() => clock.armed > 0);
      if (cutAfterMs === 0 && stalled.seen.isReleased) cutAfterMs = passedMs;
      if (passedMs === 68_000) await until(() => stalled.seen.isReleased);
    }
    t.ok(cutAfterMs >= 60_000 && cutAfterMs <= 68_000, `cut after ${cutAfterMs} ms`);
    t.notOk(slow.seen.isReleased, "the other one is served");
  },
);

onEveryFront(t, "a whole answer that is not taken is cut as a download is", async (t, serve) => {
  const clock = new ManualTimers();
  const large = new Uint8Array(40 * MB);
  const handlers = { "/now": () => ({ status: 200, contentType: "text/plain", body: large }) };
  const { port, server } = await serve(t, handlers, { stallClock: clock });
  const client = await ask(port, "/now");
  t.teardown(async () => client.close());
  await until(() => server.figures().heldBytes > 0 && clock.armed > 0);
  // Bytes that the system takes for the client, perhaps late, are progress too.
  let left = await waiting(port, client);
  let tookAtMs = 0;
  for (let passedMs = LOOK_MS; server.figures().heldBytes > 0; passedMs += LOOK_MS) {
    if (passedMs === TAKES_AT_MS) {
      do await take(client, 2_000_000);
      while ((await waiting(port, client)) === left);
      await settled(port, client);
    }
    clock.advance(LOOK_MS);
    await until(() => clock.armed > 0 || server.figures().heldBytes === 0);
    const now = await waiting(port, client);
    const isCut = server.figures().heldBytes === 0;
    // Once it takes some bytes, as many as before may wait again at once.
    if (!isCut && (now !== left || passedMs === TAKES_AT_MS)) tookAtMs = passedMs;
    left = now;
    const sinceMs = passedMs - tookAtMs;
    if (isCut) {
      t.ok(tookAtMs >= TAKES_AT_MS, "not while it took some");
      // The test may see the last progress up to one look too late.
      t.ok(sinceMs >= 60_000 - LOOK_MS && sinceMs <= 68_000, `cut ${sinceMs} ms after it took something`);
    } else if (sinceMs > 72_000) t.bailout(`not cut ${sinceMs} ms after it took something`);
  }
});

onEveryFront(t, "a steady reader of 20 KB/s is served, by the clock of the system", async (t, serve) => {
  const { seen, reply } = endless();
  const { port } = await serve(t, { "/slow": reply });
  const client = await ask(port, "/slow");
  t.teardown(async () => client.close());
  // In full size longer than what uWebSockets.js grants alone, and than two stall limits.
  const endMs = performance.now() + sized(2_000, 150_000);
  while (performance.now() < endMs) {
    await take(client, 10_000);
    await sleep(500);
  }
  t.notOk(seen.isReleased);
});
