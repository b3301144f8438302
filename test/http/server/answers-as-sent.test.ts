import { setImmediate as eventLoopTurn } from "node:timers/promises";
import t, { type Test } from "tap";
import { ServiceError } from "../../../core/service-errors.js";
import { downloadReply, jsonBytesReply, jsonReply, type StreamBody } from "../../../http/replies/reply.js";
import { CrossOrigin } from "../../../http/requests/cross-origin.js";
import { RequestDurations } from "../../../http/service/request-durations.js";
import {
  type Handler,
  type HandlerServerOptions,
  onEveryFront,
  type Serve,
  serveHandlers,
  until,
} from "../../helpers/http/handler-server.js";
import { RawConnection, rawRequest } from "../../helpers/http/raw-http.js";
import { listOf } from "../../helpers/list-of.js";

const MIB = 1024 * 1024;
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const GET = (path: string, method = "GET") =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\nOrigin: https://page\r\ntraceparent: 00-${TRACE}-b7ad6b7169203331-01\r\n\r\n`;

function download(read: StreamBody["read"], totalBytes = 1_000_000, release = () => {}) {
  return () => downloadReply({ totalBytes, read, release }, "application/octet-stream", "a.bin");
}

/** A server with counts, pages of any origin let in, and a line for each request. */
async function serveCounted(
  t: Test,
  serve: Serve,
  handlers: Record<string, Handler>,
  options: HandlerServerOptions = {},
) {
  const requests = new RequestDurations();
  const served = await serve(t, handlers, {
    level: "debug",
    crossOrigin: new CrossOrigin(["*"]),
    onAnswer: (method, path, status, durationMs) => requests.count(method, path, status, durationMs),
    ...options,
  });
  const counted = () => {
    const counts: Record<string, number> = {};
    for (const { labels, durations } of requests.series()) {
      counts[`${labels.method} ${labels.route} ${labels.status}`] = durations.counts.reduce((sum, one) => sum + one, 0);
    }
    return counts;
  };
  const logged = () => served.lines.filter(({ msg }) => msg === "request");
  return { ...served, counted, logged };
}

onEveryFront(t, "a download whose read fails is counted, logged and shown as what is sent", async (t, serve) => {
  let released = 0;
  const releasing = (read: StreamBody["read"], totalBytes?: number) =>
    download(read, totalBytes, () => void released++);
  const failing = (error: () => Error) =>
    releasing(async () => {
      throw error();
    });
  const { port, lines, counted, logged } = await serveCounted(t, serve, {
    "/damaged": failing(() => new Error("disk")),
    "/removed": failing(() => new ServiceError("file_removed", "gone", {})),
    "/busy": failing(() => new ServiceError("unavailable", "too many wait", { retry_after_seconds: 1 })),
    // It must end in an error, and not hang.
    "/short": releasing(async () => new Uint8Array(0)),
    "/later": releasing(async (position, lengthBytes) => {
      if (position > 0) throw new Error("disk");
      return new Uint8Array(lengthBytes);
    }),
    "/fine": releasing(async (_, lengthBytes) => new Uint8Array(lengthBytes)),
    "/empty": releasing(async () => new Uint8Array(0), 0),
  });
  const answers = { "/damaged": 500, "/removed": 410, "/busy": 503, "/short": 500, "/fine": 200, "/empty": 200 };
  const expected: Record<string, number> = {};
  for (const [path, status] of Object.entries(answers)) {
    const answer = await rawRequest(port, GET(path));
    t.equal(answer?.status, status, path);
    t.equal(answer?.headers["access-control-allow-origin"], "*", path);
    t.match(logged().at(-1), { level: status >= 400 ? 30 : 20, path, status, trace_id: TRACE });
    expected[`GET ${path} ${status}`] = 1;
  }
  t.equal((await rawRequest(port, GET("/damaged", "HEAD"), "HEAD"))?.status, 200, "by HEAD nothing is read");
  expected["HEAD /damaged 200"] = 1;
  t.equal(await rawRequest(port, GET("/later")), undefined, "the connection breaks before the promised length");
  expected["GET /later 200"] = 1;
  await until(() => released >= 8);
  t.match(
    lines.find(({ level, path }) => level === 50 && path === "/later"),
    { err: { message: "disk" } },
  );
  t.same(counted(), expected, "each once");
  t.equal(logged().length, 8);
  t.equal(released, 8);
});

onEveryFront(
  t,
  "an answer that is refused for lack of room is counted and shown as the 503 it is",
  async (t, serve) => {
    const large = () => jsonReply("x".repeat(16 * MIB));
    const handlers = { "/now": large, "/later": async () => large() };
    const { port, server, counted, logged } = await serveCounted(t, serve, handlers, { heldBodyBytes: 20 * MIB });
    const waiting = await RawConnection.openFor(t, port);
    waiting.socket.pause();
    waiting.send(GET("/now"));
    await until(() => server.figures().heldBytes > 0);
    for (const path of ["/now", "/later"]) {
      const refused = await rawRequest(port, GET(path));
      t.equal(refused?.status, 503);
      t.equal(refused?.headers["retry-after"], "1");
      t.equal(refused?.headers["access-control-allow-origin"], "*");
      t.match(logged().at(-1), { level: 30, path, status: 503 });
    }
    t.same(counted(), { "GET /now 200": 1, "GET /now 503": 1, "GET /later 503": 1 });
  },
);

onEveryFront(t, "a request whose client goes before its answer counts once", async (t, serve) => {
  let letGo: (() => void) | undefined;
  const { port, counted } = await serveCounted(t, serve, {
    "/read": download(
      (_, lengthBytes) =>
        new Promise((resolve) => {
          letGo = () => resolve(new Uint8Array(lengthBytes));
        }),
    ),
    "/made": async (request) => {
      letGo = () => {};
      await until(() => request.gone().aborted);
      return jsonReply({});
    },
  });
  for (const path of ["/read", "/made"]) {
    letGo = undefined;
    const connection = await RawConnection.open(port);
    connection.send(GET(path));
    await until(() => letGo !== undefined);
    connection.close();
    await connection.closed;
    for (let turns = 0; turns < 20; turns++) await eventLoopTurn();
    (letGo as unknown as () => void)();
    await until(() => counted()[`GET ${path} 200`] !== undefined);
  }
  for (let turns = 0; turns < 20; turns++) await eventLoopTurn();
  t.same(counted(), { "GET /read 200": 1, "GET /made 200": 1 });
});

// uWebSockets.js answers such requests by itself, and nobody is told of them.
t.test("what is no HTTP to node:http counts as a 400 of no route", async (t) => {
  const serve: Serve = (t, handlers, options) => serveHandlers(t, handlers, { ...options, front: "node" });
  const { port, counted, logged } = await serveCounted(t, serve, {});
  t.equal((await rawRequest(port, "no HTTP at all\r\n\r\n"))?.status, 400);
  t.same(counted(), { "other none 400": 1 });
  t.match(logged(), listOf({ status: 400, trace_id: /^[0-9a-f]{32}$/, cause: "HPE_INVALID_METHOD" }));
});

onEveryFront(
  t,
  "what is made of a kept reply stays with it, whoever asks from another origin",
  async (t, serve, front) => {
    const kept = jsonBytesReply(Buffer.from('{"a":1}'), true);
    const { port } = await serveCounted(t, serve, { "/kept": () => kept });
    const seen = [];
    for (let nth = 0; nth < 2; nth++) {
      const answer = await rawRequest(port, GET("/kept"));
      t.equal(answer?.headers["access-control-allow-origin"], "*");
      seen.push(kept.lines);
    }
    t.equal(kept.headers?.length, 0, "the lines for a page are in none of it");
    const own = await rawRequest(port, "GET /kept HTTP/1.1\r\nHost: x\r\n\r\n");
    t.equal(own?.headers["access-control-allow-origin"], undefined);
    // On node:http, the bytes of the lines are not ours.
    t.equal(seen[0] !== undefined, front === "uws");
    t.equal(seen[1], seen[0], "the same bytes");
  },
);
