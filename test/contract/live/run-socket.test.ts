import t, { type Test } from "tap";
import type { ClientOptions } from "ws";
import { ServiceError } from "../../../core/service-errors.js";
import type { LiveClientsOptions } from "../../../http/live/live-clients.js";
import { MESSAGE_PART_BYTES, refusedSocket } from "../../../http/live/run-socket.js";
import { ApiKeys, createKey } from "../../../http/requests/api-keys.js";
import { CrossOrigin } from "../../../http/requests/cross-origin.js";
import type { ListenOptions } from "../../helpers/captures/recorded-cell.js";
import { frontsHere } from "../../helpers/http/fronts-here.js";
import { type DeclaredHandler, onEveryFront as handlersOnEveryFront } from "../../helpers/http/handler-server.js";
import { RawConnection, type RawResponse, rawRequest } from "../../helpers/http/raw-http.js";
import { certificateFiles, TEST_CERTIFICATE } from "../../helpers/http/test-certificate.js";
import { listOf } from "../../helpers/list-of.js";
import { ChangingCell } from "../../helpers/live/changing-cell.js";
import { EventStream } from "../../helpers/live/event-stream.js";
import { RunSocketClient } from "../../helpers/live/run-socket-client.js";
import { HANDSHAKE, handshakeRequest } from "../../helpers/live/socket-frames.js";
import { ManualTimers } from "../../helpers/recorder/manual-timers.js";

interface Place {
  cell: ChangingCell;
  port: number;
  open(runId: string, protocols?: string[], options?: ClientOptions): RunSocketClient;
  /** The answer to a handshake with other or further lines. */
  handshake(runId: string, lines?: Record<string, string | undefined>): Promise<RawResponse | undefined>;
}

function onEveryFront(
  name: string,
  run: (t: Test, place: Place) => Promise<void>,
  listen: ListenOptions = {},
  live?: LiveClientsOptions,
): void {
  for (const { name: frontName, front, uwsPackage } of frontsHere(t)) {
    t.test(`${name} (${frontName})`, async (t) => {
      const cell = new ChangingCell(live);
      const port = await cell.listenFor(t, { ...listen, front, ...(uwsPackage !== undefined && { uwsPackage }) });
      await run(t, {
        cell,
        port,
        open(runId, protocols, options) {
          const client = new RunSocketClient(port, runId, protocols, options);
          t.teardown(() => client.ws.terminate());
          return client;
        },
        handshake(runId, lines = {}) {
          return rawRequest(port, handshakeRequest(runId, lines));
        },
      });
    });
  }
}

onEveryFront("a run is told at once, after each change, and closed with its end", async (t, { cell, port, open }) => {
  const id = cell.create();
  const listed = await rawRequest(port, "GET /runs HTTP/1.1\r\nHost: cell:8000\r\n\r\n");
  t.match(listed?.json(), {
    runs: listOf({ links: { websocket: { href: `ws://cell:8000/runs/${id}/live`, method: "GET" } } }),
  });
  const client = open(id.toUpperCase(), ["inspection.v1"]);
  await client.until(({ messages }) => messages.length === 1);
  t.equal(client.ws.protocol, "inspection.v1");
  t.equal(client.ws.extensions, "");
  t.match(client.upgradeHeaders["x-trace-id"], /^[0-9a-f]{32}$/);
  t.match(client.messages, listOf({ type: "run", run: { id, status: "pending" } }));
  const whole = await rawRequest(port, `GET /runs/${id} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
  t.strictSame(client.messages[0]?.run, whole?.json(), "it is the run's document");
  cell.start(id);
  await client.until(({ messages }) => messages.at(-1)?.run.status === "running");
  cell.finish(id);
  cell.endAs(id, "completed");
  t.strictSame(await client.end(), { code: 1000, reason: "completed" });
  t.match(client.messages.at(-1)?.run, { status: "completed", links: { websocket: null } });

  const late = open(id);
  t.strictSame(await late.end(), { code: 1000, reason: "completed" });
  t.equal(late.messages.length, 1);
  t.equal(late.ws.protocol, "");
});

onEveryFront("many changes come as few messages, the newest state last", async (t, { cell, open }) => {
  const id = cell.create();
  const client = open(id);
  await client.until(({ messages }) => messages.length === 1);
  const beginMs = performance.now();
  for (let n = 0; n < 200; n++) {
    cell.note(id);
    await new Promise((resolve) => setImmediate(resolve));
  }
  cell.endAs(id, "failed");
  t.strictSame(await client.end(), { code: 1000, reason: "failed" });
  const most = Math.ceil((performance.now() - beginMs) / 100) + 2;
  t.ok(client.messages.length <= most, `${client.messages.length} messages, at most ${most}`);
});

onEveryFront("no upgrade: an unknown run, a foreign page, no handshake", async (t, { cell, port, open, handshake }) => {
  const id = cell.create();
  const unknown = open("019c13ec-ffff-7000-8000-000000000000");
  await unknown.end();
  t.equal(unknown.refusedStatus, 404);
  const table: [what: string, lines: Record<string, string | undefined>, status: number, params: object][] = [
    ["a page of another origin", { Origin: "https://elsewhere.example" }, 403, { field: "origin" }],
    ["an origin that is no URL", { Origin: "null" }, 403, { field: "origin" }],
    ["another version", { "Sec-WebSocket-Version": "8" }, 426, { field: "sec-websocket-version", allowed: "13" }],
    ["no version", { "Sec-WebSocket-Version": undefined }, 426, { field: "sec-websocket-version" }],
    ["a short key", { "Sec-WebSocket-Key": "abc" }, 400, { field: "sec-websocket-key" }],
    ["no key", { "Sec-WebSocket-Key": undefined }, 400, { field: "sec-websocket-key" }],
    ["an empty protocol", { "Sec-WebSocket-Protocol": "inspection.v1,,x" }, 400, { field: "sec-websocket-protocol" }],
    ["a protocol twice", { "Sec-WebSocket-Protocol": "x, x" }, 400, { allowed: "a list of different tokens" }],
    ["no token", { "Sec-WebSocket-Protocol": "x, bearer.a/b" }, 400, { value: "x, bearer.…" }],
    ["a further protocol", { Upgrade: "websocket, h2c" }, 426, { field: "upgrade" }],
    ["another protocol", { Upgrade: "h2c" }, 426, { field: "upgrade" }],
    ["no upgrade", { Upgrade: undefined, Connection: undefined }, 426, { field: "upgrade" }],
  ];
  for (const [what, lines, status, params] of table) {
    const refused = await handshake(id, lines);
    t.equal(refused?.status, status, what);
    t.match(refused?.json(), { params, trace_id: refused?.headers["x-trace-id"] }, what);
    if (status === 426) t.match(refused?.headers, { upgrade: "websocket", "sec-websocket-version": "13" }, what);
  }
  const head = Object.entries({ Host: "x", ...HANDSHAKE }).map(([name, value]) => `${name}: ${value}\r\n`);
  const byHead = await rawRequest(port, `HEAD /runs/${id}/live HTTP/1.1\r\n${head.join("")}\r\n`, "HEAD");
  t.equal(byHead?.status, 426);
  t.equal(cell.live.figures.run.open, 0, "no refused one holds a place");
  for (const origin of [`http://127.0.0.1:${port}`, undefined]) {
    const client = open(id, [], origin === undefined ? {} : { origin });
    await client.until(({ messages }) => messages.length === 1);
    t.match(client.upgradeHeaders["x-trace-id"], /^[0-9a-f]{32}$/, "one line, whatever was refused before");
  }
  t.equal(cell.live.figures.run.open, 2);
});

onEveryFront(
  "a page of an allowed origin may open it",
  async (t, { cell, open, handshake }) => {
    const id = cell.create();
    const client = open(id, [], { origin: "https://dashboard.factory" });
    await client.until(({ messages }) => messages.length === 1);
    t.equal((await handshake(id, { Origin: "https://elsewhere.example" }))?.status, 403);
  },
  { crossOrigin: new CrossOrigin(["https://dashboard.factory"]) },
);

const { key, stored } = createKey("read", "2026-01-31T12:00:00.000000Z");

onEveryFront(
  "the API key comes in a header, or in a subprotocol, which is not selected",
  async (t, { cell, open, handshake }) => {
    const id = cell.create();
    for (const client of [
      open(id, [], { headers: { authorization: `Bearer ${key}` } }),
      open(id, ["inspection.v1", `bearer.${key}`]),
    ]) {
      await client.until(({ messages }) => messages.length === 1);
      t.ok(["", "inspection.v1"].includes(client.ws.protocol), client.ws.protocol);
    }
    for (const lines of [
      {},
      { "Sec-WebSocket-Protocol": "inspection.v1, bearer.isk_wrong" },
      { Authorization: "Bearer wrong", "Sec-WebSocket-Protocol": `bearer.${key}` },
    ]) {
      t.equal((await handshake(id, lines))?.status, 401);
    }
  },
  { apiKeys: new ApiKeys([stored]) },
);

onEveryFront("what a client sends is ignored, up to 1 KiB", async (t, { cell, open }) => {
  const id = cell.create();
  const quiet = open(id);
  await quiet.until(({ messages }) => messages.length === 1);
  quiet.ws.send("x".repeat(1024));
  quiet.ws.send(Buffer.alloc(1024), { binary: true });
  for (const fin of [false, false, true]) quiet.ws.send("x".repeat(300), { fin });
  quiet.ws.ping("are you there");
  await quiet.until(({ pongs }) => pongs.length === 1);
  t.strictSame(quiet.pongs, ["are you there"]);
  cell.start(id);
  await quiet.until(({ messages }) => messages.length === 2);

  const senders: ((client: RunSocketClient) => void)[] = [
    ({ ws }) => ws.send("x".repeat(1025)),
    ({ ws }) => ws.send(Buffer.alloc(100_000)),
    ({ ws }) => {
      for (const fin of [false, false, true]) ws.send("x".repeat(500), { fin });
    },
  ];
  for (const send of senders) {
    const client = open(id);
    await client.until(({ messages }) => messages.length === 1);
    send(client);
    t.equal((await client.end()).code, 1009);
  }
  quiet.ws.close(1000);
  t.equal((await quiet.end()).code, 1000, "a client that closes is answered");
});

const pingTimers = new ManualTimers();

/** After it, each side has what the other sent before. */
async function roundTrip(client: RunSocketClient): Promise<void> {
  const { length } = client.pongs;
  client.ws.ping();
  await client.until(({ pongs }) => pongs.length > length);
}

onEveryFront(
  "the service pings every 30 s, and drops who does not answer",
  async (t, { cell, open }) => {
    const id = cell.create();
    const answers = open(id);
    const silent = open(id, [], { autoPong: false });
    const clients = [answers, silent];
    await Promise.all(clients.map((client) => client.until(({ messages }) => messages.length === 1)));
    pingTimers.advance(29_999);
    await roundTrip(answers);
    t.equal(answers.pings, 0);
    pingTimers.advance(1);
    await Promise.all(clients.map((client) => client.until(({ pings }) => pings === 1)));
    await roundTrip(answers);
    // Messages sent to the client do not count as an answer from it.
    cell.start(id);
    await Promise.all(clients.map((client) => client.until(({ messages }) => messages.length === 2)));
    pingTimers.advance(30_000);
    t.equal((await silent.end()).code, 1006);
    t.equal(silent.pings, 1);
    await answers.until(({ pings }) => pings === 2);
  },
  { pingTimers },
);

onEveryFront(
  "above the limit it is closed with 1013; both kinds count",
  async (t, { cell, port, open }) => {
    const id = cell.create();
    const client = open(id);
    await client.until(({ messages }) => messages.length === 1);
    const stream = await EventStream.open({ port });
    t.equal((await open(id).end()).code, 1013);
    t.equal((await EventStream.open({ port })).response.statusCode, 503);
    stream.close();
    let again = open(id);
    while (again.messages.length === 0) {
      await Promise.race([again.end(), again.until(({ messages }) => messages.length > 0)]).catch(() => {});
      if (again.messages.length === 0) again = open(id);
    }
    t.equal(cell.live.figures.run.open, 2);
  },
  {},
  { limit: 2 },
);

handlersOnEveryFront(t, "a socket that the server does not open is released", async (t, serve) => {
  let released = 0;
  const socket = { ...refusedSocket("x"), release: () => void released++ };
  const { port } = await serve(t, { "/x": () => ({ status: 101, body: null, socket }) });
  const refused = await rawRequest(port, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
  t.equal(refused?.status, 426);
  t.match(refused?.json(), { code: "upgrade_required" });
  t.equal(released, 1);
});

handlersOnEveryFront(t, "a read that fails is logged, and closes with 1011, or with 1013 for now", async (t, serve) => {
  const handlerOf = (error: Error): DeclaredHandler => {
    const socket = { ...refusedSocket("x"), next: () => Promise.reject(error) };
    return { live: "socket", handle: () => ({ status: 101, body: null, socket }) };
  };
  const { port, lines } = await serve(t, {
    "/runs/broken/live": handlerOf(new Error("a bad disk")),
    "/runs/busy/live": handlerOf(new ServiceError("unavailable", "busy")),
  });
  t.equal((await new RunSocketClient(port, "busy").end()).code, 1013);
  t.strictSame(lines, [], "as for a GET");
  const broken = new RunSocketClient(port, "broken");
  t.equal((await broken.end()).code, 1011);
  const trace_id = broken.upgradeHeaders["x-trace-id"];
  t.match(lines, listOf({ trace_id, path: "/runs/broken/live", err: { message: "a bad disk" } }));
});

onEveryFront(
  "a client that reads a large message too slowly while the run changes must go, one that reads stays",
  async (t, { cell, open }) => {
    // More than the system itself keeps for a client that reads nothing.
    const id = cell.create();
    cell.note(id, { text: "x".repeat(16_000_000) });
    const slow = open(id);
    slow.ws.on("open", () => slow.ws.pause());
    while (cell.live.sent.bytes === 0) await new Promise((resolve) => setImmediate(resolve));
    cell.note(id);
    const quick = open(id);
    await quick.until(({ messages }) => messages.length === 1);
    t.equal(cell.live.figures.run.open, 1);
    slow.ws.resume();
    // 1006 if the client does not take the close frame in time.
    t.ok([1013, 1006].includes((await slow.end()).code));
    cell.endAs(id, "completed");
    t.equal((await quick.end()).code, 1000);
    t.equal(cell.live.sent.bytes, 0);
  },
  {},
  { limit: 512, sentBytes: 20_000_000 },
);

onEveryFront(
  "a client that takes nothing of a message must go",
  async (t, { cell, open }) => {
    const id = cell.create();
    cell.note(id, { text: "x".repeat(16_000_000) });
    const stuck = open(id);
    stuck.ws.on("open", () => stuck.ws.pause());
    while (cell.live.sent.bytes === 0) await new Promise((resolve) => setImmediate(resolve));
    while (cell.live.figures.run.open > 0) {
      pingTimers.advance(30_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    stuck.ws.resume();
    t.equal((await stuck.end()).code, 1006);
  },
  { pingTimers },
);

for (const ca of [undefined, TEST_CERTIFICATE]) {
  const name = `a client that reads slowly gets a large message whole${ca === undefined ? "" : " over TLS"}`;
  handlersOnEveryFront(t, name, async (t, serve) => {
    // Several times what the system keeps for a client, so that the server waits for room again and again.
    const bytes = Buffer.alloc(MESSAGE_PART_BYTES, "x");
    const parts = 2_700;
    let given = 0;
    const next = async () => (given++ < parts ? { bytes, isLast: given === parts } : undefined);
    const socket = { ...refusedSocket("x"), next };
    const handle = () => ({ status: 101, body: null, socket });
    const tls = ca === undefined ? {} : { tls: certificateFiles(t) };
    const { port } = await serve(t, { "/runs/large/live": { live: "socket", handle } }, tls);
    const connection = await RawConnection.open(port, ca);
    t.teardown(() => connection.close());
    connection.socket.on("data", () => {
      connection.socket.pause();
      setImmediate(() => connection.socket.resume());
    });
    connection.send(handshakeRequest("large"));
    while (connection.receivedBytes < parts * bytes.length) await new Promise((resolve) => setImmediate(resolve));
    t.pass("all of it came");
  });
}

onEveryFront("at a stop all are closed with 1001", async (t, { cell, open }) => {
  const id = cell.create();
  const clients = Array.from({ length: 10 }, () => open(id));
  await Promise.all(clients.map((client) => client.until(({ messages }) => messages.length === 1)));
  await cell.close(20_000);
  for (const client of clients) t.equal((await client.end()).code, 1001);
});
