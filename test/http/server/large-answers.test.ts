import { setImmediate as eventLoopTurn } from "node:timers/promises";
import t from "tap";
import { jsonReply, type StreamBody } from "../../../http/replies/reply.js";
import { onEveryFront, until } from "../../helpers/http/handler-server.js";
import { download, GET, patternByte, patternStream } from "../../helpers/http/pattern-stream.js";
import { RawConnection, rawRequest } from "../../helpers/http/raw-http.js";
import { ManualTimers } from "../../helpers/recorder/manual-timers.js";

const MIB = 1024 * 1024;

/** Waits until a figure has stayed the same for 2,000 turns of the event loop. */
async function standstill(figure: () => number): Promise<void> {
  let last = figure();
  for (let turns = 0; turns < 2000; turns++) {
    await eventLoopTurn();
    if (figure() !== last) {
      last = figure();
      turns = 0;
    }
  }
}

onEveryFront(
  t,
  "a client that sends without reading makes the server hold no more than one answer",
  async (t, serve, front) => {
    const bytes = Buffer.alloc(100_000, "x");
    let handled = 0;
    const { port } = await serve(t, {
      "/a": () => {
        handled++;
        return { status: 200, contentType: "text/plain", body: bytes };
      },
    });
    const connection = await RawConnection.open(port);
    connection.socket.pause();
    const before = process.memoryUsage().rss;
    connection.send(GET("/a").repeat(20_000));
    await until(() => handled > 0);
    await standstill(() => handled);
    // Two gigabytes were asked for. The kernel's buffers take some megabytes of them; then uWebSockets.js ends the connection at the
    // next request, and node:http reads no further.
    t.ok(handled > 1 && handled < 1000, `${handled} of 20000 were handled`);
    t.ok(process.memoryUsage().rss - before < 200e6, "memory stays");
    if (front === "node") connection.close();
    else connection.socket.resume();
    await connection.closed;
  },
);

onEveryFront(t, "an answer larger than the socket takes at once arrives whole", async (t, serve) => {
  const bytes = Buffer.allocUnsafe(30_000_000);
  for (let i = 0; i < bytes.length; i++) bytes[i] = patternByte(i);
  const reply = { status: 200, contentType: "text/plain", body: bytes };
  const { port } = await serve(t, {
    "/now": () => reply,
    "/later": async () => reply,
    "/small": () => jsonReply(1),
  });
  for (const path of ["/now", "/later"]) {
    const connection = await RawConnection.open(port);
    connection.socket.pause();
    connection.send(GET(path));
    await eventLoopTurn();
    connection.socket.resume();
    const response = await connection.response();
    t.ok(response?.body.equals(bytes), path);
    connection.send(GET("/small"));
    t.equal((await connection.response())?.json(), 1, "the connection goes on");
    connection.close();
  }
});

onEveryFront(t, "downloads of every size around the slice arrive bit-equal, with length and name", async (t, serve) => {
  const slice = 256 * 1024;
  const sizes = [0, 1, 1000, slice - 1, slice, slice + 1, 3 * slice, 5_000_001];
  const streams = new Map(sizes.map((size) => [size, patternStream(size)]));
  const { port } = await serve(
    t,
    Object.fromEntries([...streams].map(([size, { body }]) => [`/${size}`, () => download(body)])),
  );
  const connection = await RawConnection.openFor(t, port);
  for (const [size, { seen }] of streams) {
    connection.send(GET(`/${size}`));
    const response = await connection.response();
    t.equal(response?.headers["content-length"], String(size));
    t.equal(response?.headers["content-disposition"], 'attachment; filename="pattern.bin"');
    t.ok(
      response?.body.every((byte, at) => byte === patternByte(at)),
      `${size} bytes`,
    );
    await until(() => seen.released === 1);
    const { reads } = seen;
    t.equal(reads, Math.ceil(size / slice));
    connection.send(`HEAD /${size} HTTP/1.1\r\nHost: x\r\n\r\n`);
    t.equal((await connection.response("HEAD"))?.headers["content-length"], String(size));
    await until(() => seen.released === 2);
    t.equal(seen.reads, reads, "HEAD reads nothing");
  }
});

onEveryFront(
  t,
  "many downloads at once, of slow clients and of some that go, keep to their own bytes in memory that is used again",
  async (t, serve) => {
    const totalBytes = 3 * MIB + 77;
    const byteOf = (nth: number, position: number) => (patternByte(position) + nth * 37) & 0xff;
    const stream = (nth: number): StreamBody => ({
      totalBytes,
      async read(position, lengthBytes, _signal, into) {
        const bytes = into?.subarray(0, lengthBytes) ?? new Uint8Array(lengthBytes);
        for (let half = 0; half < 2; half++) {
          const from = half * (lengthBytes >> 1);
          const to = half === 0 ? lengthBytes >> 1 : lengthBytes;
          for (let i = from; i < to; i++) bytes[i] = byteOf(nth, position + i);
          await eventLoopTurn();
        }
        return bytes;
      },
      release: () => {},
    });
    const { port } = await serve(
      t,
      Object.fromEntries(Array.from({ length: 12 }, (_, nth) => [`/${nth}`, () => download(stream(nth))])),
    );
    for (let round = 0; round < 2; round++) {
      const one = async (nth: number): Promise<void> => {
        const connection = await RawConnection.open(port);
        connection.socket.pause();
        connection.send(GET(`/${nth}`));
        for (let turns = 0; turns < 50 * nth; turns++) await eventLoopTurn();
        if (nth % 4 === 3) return connection.close();
        connection.socket.resume();
        const body = (await connection.response())?.body ?? Buffer.alloc(0);
        connection.close();
        t.ok(
          body.length === totalBytes && body.every((byte, at) => byte === byteOf(nth, at)),
          `download ${nth}, round ${round}`,
        );
      };
      await Promise.all(Array.from({ length: 12 }, (_, nth) => one(nth)));
    }
  },
);

onEveryFront(t, "a slow client holds two slices, and reading stops when it goes", async (t, serve) => {
  const { body, seen } = patternStream(2_000_000_000);
  const { port, server } = await serve(t, { "/big": () => download(body) });
  const connection = await RawConnection.open(port);
  connection.socket.pause();
  connection.send(GET("/big"));
  await until(() => seen.reads > 2);
  // Both sockets' buffers fill; then no more is read: the count stands still while the loop turns on.
  await standstill(() => seen.reads);
  t.ok(seen.handedOutBytes < 40_000_000, `${seen.handedOutBytes} bytes read of two billion`);
  t.equal(seen.released, 0);
  connection.close();
  await until(() => seen.released === 1);
  t.notOk(seen.releasedWhileReading);
  const { reads } = seen;
  for (let i = 0; i < 200; i++) await eventLoopTurn();
  t.equal(seen.reads, reads, "nothing is read after the client went");
  await server.close(1000);
});

onEveryFront(
  t,
  "a client that goes in the middle of a read: the read ends first, then its source is released, once",
  async (t, serve) => {
    let let_go: (() => void) | undefined;
    let released = 0;
    let replied = false;
    const { port } = await serve(t, {
      "/a": () =>
        download({
          totalBytes: 1000,
          read: () =>
            new Promise((resolve) => {
              let_go = () => resolve(new Uint8Array(1000));
            }),
          release: () => {
            released++;
          },
        }),
      "/b": async (request) => {
        await until(() => request.gone().aborted);
        replied = true;
        return jsonReply({});
      },
    });
    const connection = await RawConnection.open(port);
    connection.send(GET("/a"));
    await until(() => let_go !== undefined);
    connection.close();
    await connection.closed;
    for (let i = 0; i < 100; i++) await eventLoopTurn();
    t.equal(released, 0);
    let_go?.();
    await until(() => released > 0);
    t.equal(released, 1);
    const other = await RawConnection.open(port);
    other.send(GET("/b"));
    await eventLoopTurn();
    other.close();
    await until(() => replied);
    t.equal((await rawRequest(port, GET("/nowhere")))?.status, 404, "answering a client that is gone harms nobody");
  },
);

onEveryFront(
  t,
  "whole answers that clients do not read are bounded together; shared ones count once, small ones always go",
  async (t, serve) => {
    const large = () => jsonReply("x".repeat(16 * MIB));
    const shared = large();
    const handlers = {
      "/own": large,
      "/later": async () => large(),
      "/shared": () => shared,
      "/small": () => jsonReply("ok"),
    };
    const { port } = await serve(t, handlers, { heldBodyBytes: 40 * MIB });
    const ask = async (path: string) => {
      const connection = await RawConnection.openFor(t, port);
      connection.socket.pause();
      connection.send(GET(path));
      return connection;
    };
    const status = async (path: string) => (await rawRequest(port, GET(path)))?.status;
    const waiting = [await ask("/own"), await ask("/later")];
    while ((await status("/own")) === 200) await eventLoopTurn();
    for (const path of ["/own", "/later", "/shared"]) t.equal(await status(path), 503, path);
    t.match((await rawRequest(port, GET("/own")))?.json(), { code: "unavailable", retryable: true });
    t.equal(await status("/small"), 200);
    for (const connection of waiting) connection.close();
    while ((await status("/later")) !== 200) await eventLoopTurn();

    for (let i = 0; i < 8; i++) await ask("/shared");
    for (let i = 0; i < 5; i++) t.equal(await status("/shared"), 200);
    t.equal(await status("/own"), 200, "one buffer is held for all of them");
  },
);

onEveryFront(
  t,
  "bytes that are at hand go out whenever there is room, without a look at what waits",
  async (t, serve) => {
    const totalBytes = 12 * MIB + 77;
    const bytes = new Uint8Array(totalBytes);
    for (let i = 0; i < totalBytes; i++) bytes[i] = patternByte(i);
    const body: StreamBody = {
      totalBytes,
      read: async (position, lengthBytes) => bytes.subarray(position, position + lengthBytes),
      release: () => {},
    };
    // The timer that offers waiting bytes anew never runs here, so the test hangs if an event is missed.
    const { port } = await serve(t, { "/a": () => download(body) }, { stallClock: new ManualTimers() });
    for (let nth = 0; nth < 10; nth++) t.ok((await rawRequest(port, GET("/a")))?.body.equals(bytes), `download ${nth}`);
  },
);
