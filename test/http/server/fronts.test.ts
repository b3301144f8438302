import { setImmediate as eventLoopTurn } from "node:timers/promises";
import pino from "pino";
import t from "tap";
import { ServiceError } from "../../../core/service-errors.js";
import { jsonBytesReply, jsonReply } from "../../../http/replies/reply.js";
import { RequestPipeline } from "../../../http/requests/request-pipeline.js";
import type { HandlerRequest } from "../../../http/requests/route.js";
import { startFront } from "../../../http/server/choose-server.js";
import type { HttpServer } from "../../../http/server/server-options.js";
import { SYSTEM_STALL_CLOCK } from "../../../http/server/stalled-clients.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import { onEveryFront, until } from "../../helpers/http/handler-server.js";
import { download, GET, patternByte, patternStream } from "../../helpers/http/pattern-stream.js";
import { RawConnection, rawRequest } from "../../helpers/http/raw-http.js";
import { TEST_CERTIFICATE, TEST_PRIVATE_KEY } from "../../helpers/http/test-certificate.js";
import { listOf } from "../../helpers/list-of.js";

onEveryFront(t, "JSON, its length, its type and a trace id; the same by HEAD without the body", async (t, serve) => {
  const { port } = await serve(t, { "/a": () => jsonReply({ é: 1 }) });
  const get = await rawRequest(port, GET("/a"));
  t.equal(get?.status, 200);
  t.same(get?.json(), { é: 1 });
  t.equal(get?.headers["content-type"], "application/json");
  t.equal(get?.headers["content-length"], "8");
  t.match(get?.headers["x-trace-id"], /^[0-9a-f]{32}$/);
  t.ok(get?.headers.date);
  const refused = await rawRequest(port, "HEAD /a HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", "HEAD");
  t.equal(refused?.status, 400);
  t.equal(refused?.headers.connection, "close");
  const connection = await RawConnection.openFor(t, port);
  connection.send("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n");
  const head = await connection.response("HEAD");
  t.equal(head?.status, 200);
  t.equal(head?.headers["content-length"], "8");
  connection.send(GET("/a"));
  t.same(
    (await connection.response())?.json(),
    { é: 1 },
    "the connection goes on after HEAD, with no stray body between",
  );
});

onEveryFront(t, "a kept reply has the trace id of each request, and all else as before", async (t, serve) => {
  const kept = jsonBytesReply(Buffer.from(JSON.stringify({ text: "x".repeat(4_000) })), true);
  const { port } = await serve(t, { "/kept": () => kept });
  const ids = ["0af7651916cd43dd8448eb211c80319c", "ffffffffffffffffffffffffffffffff"];
  for (const encoding of ["", "Accept-Encoding: gzip\r\n"]) {
    const connection = await RawConnection.openFor(t, port);
    const traced = ids.map((id) => GET("/kept", `${encoding}traceparent: 00-${id}-b7ad6b7169203331-01\r\n`));
    connection.send(GET("/kept", encoding));
    t.equal((await connection.response())?.status, 200, "made, and compressed where that is asked for");
    // Several in one piece: each must leave with its own before the next one is written.
    connection.send([...traced, GET("/kept", encoding), ...traced].join(""));
    const answers = [];
    for (let nth = 0; nth < 5; nth++) answers.push(await connection.response());
    const [first, , third, ...last] = answers;
    const shown = answers.map((answer) => answer?.headers["x-trace-id"]);
    t.same([shown[0], shown[1], shown[3], shown[4]], [...ids, ...ids]);
    t.match(shown[2], /^[0-9a-f]{32}$/);
    t.notOk(ids.includes(shown[2] as string), "one without a trace gets a fresh one");
    for (const answer of [third, ...last]) {
      const { "x-trace-id": _, date: __, ...others } = answer?.headers ?? {};
      const { "x-trace-id": ___, date: ____, ...expected } = first?.headers ?? {};
      t.strictSame(others, expected);
      t.same(answer?.body, first?.body);
    }
    t.match(first?.headers, { "content-type": "application/json", etag: /^W\/"[\w-]{16}"$/, vary: "Accept-Encoding" });
    t.equal(first?.headers["content-encoding"], encoding === "" ? undefined : "gzip");
  }
});

onEveryFront(
  t,
  "the trace id of a valid traceparent, a fresh one else, in answers, errors and the log",
  async (t, serve) => {
    const trace = "0af7651916cd43dd8448eb211c80319c";
    const { port, lines } = await serve(t, { "/a": () => jsonReply({}) }, { level: "debug" });
    const valid = `traceparent: 00-${trace}-b7ad6b7169203331-01\r\n`;
    t.equal((await rawRequest(port, GET("/a", valid)))?.headers["x-trace-id"], trace);
    const missing = await rawRequest(port, GET("/b", valid));
    t.equal(missing?.headers["x-trace-id"], trace);
    t.match(missing?.json(), { trace_id: trace });
    for (const header of [
      `traceparent: 00-${"0".repeat(32)}-b7ad6b7169203331-01\r\n`,
      "traceparent: nonsense\r\n",
      valid + valid,
    ]) {
      const fresh = (await rawRequest(port, GET("/a", header)))?.headers["x-trace-id"];
      t.match(fresh, /^[0-9a-f]{32}$/);
      t.not(fresh, trace);
      t.not(fresh, "0".repeat(32));
    }
    t.match(lines[0], { level: 20, msg: "request", trace_id: trace, method: "GET", path: "/a", status: 200 });
    t.match(lines[1], { trace_id: trace, path: "/b", status: 404 });
  },
);

onEveryFront(t, "a request's line has its query, also when the answer comes later", async (t, serve) => {
  const handlers = {
    "/now": () => jsonReply({}),
    "/later": async () => {
      await eventLoopTurn();
      await eventLoopTurn();
      return jsonReply({});
    },
    "/fails": async () => {
      await eventLoopTurn();
      throw new ServiceError("run_not_found", "no such run", {});
    },
  };
  const { port, lines } = await serve(t, handlers, { level: "debug" });
  for (const [nth, path] of ["/now", "/later", "/fails"].entries()) {
    await rawRequest(port, GET(`${path}?a=${nth}&b`));
    await until(() => lines.length > nth);
    t.match(lines[nth], { path, query: `a=${nth}&b` });
  }
});

onEveryFront(
  t,
  "unknown path, other method, thrown error, rejected promise: an envelope each, and the process lives",
  async (t, serve) => {
    const { port, lines } = await serve(t, {
      "/throws": () => {
        throw new TypeError("secret detail");
      },
      "/rejects": async () => {
        await eventLoopTurn();
        throw new RangeError("secret detail");
      },
      "/named": async () => {
        throw new ServiceError("run_not_found", "no such run", { run_id: "x" });
      },
      "/short": async () => {
        throw new FileSystemError("ENFILE", "open", "/secret/meta");
      },
      "/ok": () => jsonReply({ ok: true }),
    });
    for (const path of ["/throws", "/rejects"]) {
      const response = await rawRequest(port, GET(path));
      t.equal(response?.status, 500, path);
      const envelope = response?.json() as Record<string, unknown>;
      t.same(Object.keys(envelope), ["code", "message", "params", "trace_id", "retryable"]);
      t.strictSame((envelope as { params: unknown }).params, {});
      t.match(envelope, {
        code: "internal_error",
        retryable: true,
        trace_id: response?.headers["x-trace-id"] as string,
      });
      t.notMatch(response?.body.toString(), /secret/);
    }
    t.equal(lines.length, 2);
    t.match(lines[0], { level: 50, err: { type: "TypeError", message: "secret detail" }, path: "/throws" });
    const named = await rawRequest(port, GET("/named"));
    t.equal(named?.status, 404);
    t.match(named?.json(), {
      code: "run_not_found",
      message: "no such run",
      params: { run_id: "x" },
      retryable: false,
    });
    const short = await rawRequest(port, GET("/short"));
    t.equal(short?.status, 503);
    t.equal(short?.headers["retry-after"], "1");
    t.match(short?.json(), {
      code: "unavailable",
      message: /the machine has no file descriptor left$/,
      retryable: true,
    });
    const unknown = await rawRequest(port, GET("/nowhere"));
    t.equal(unknown?.status, 404);
    t.match(unknown?.json(), { code: "route_not_found", params: { path: "/nowhere" } });
    const post = await rawRequest(port, "POST /ok HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}");
    t.equal(post?.status, 405);
    t.equal(post?.headers.allow, "GET, HEAD, OPTIONS");
    t.match(post?.json(), {
      code: "method_not_allowed",
      params: { method: "POST", allow: listOf("GET", "HEAD", "OPTIONS") },
    });
    t.equal((await rawRequest(port, GET("/ok")))?.status, 200);
    t.equal(lines.length, 2, "only failures of the service itself are logged as errors");
  },
);

onEveryFront(t, "links start with --base-url, or else with the request's Host", async (t, serve) => {
  const handlers = { "/a": (request: HandlerRequest) => jsonReply(request.baseUrl) };
  t.equal((await rawRequest((await serve(t, handlers)).port, GET("/a")))?.json(), "http://cell:8000");
  const { port } = await serve(t, handlers, { baseUrl: "https://results.factory/cell-1" });
  t.equal((await rawRequest(port, GET("/a")))?.json(), "https://results.factory/cell-1");
});

onEveryFront(t, "pipelined requests are answered in order", async (t, serve) => {
  let count = 0;
  const { port } = await serve(t, { "/a": () => jsonReply(++count) });
  const connection = await RawConnection.openFor(t, port);
  connection.send(GET("/a").repeat(100));
  for (let i = 1; i <= 100; i++) t.equal((await connection.response())?.json(), i);
});

onEveryFront(
  t,
  "a request after one that is still being answered waits or closes the connection, never mixes answers",
  async (t, serve, front) => {
    const { port } = await serve(t, {
      "/slow": async () => {
        await eventLoopTurn();
        return jsonReply("slow");
      },
      "/fast": () => jsonReply("fast"),
    });
    const connection = await RawConnection.open(port);
    connection.send(GET("/slow") + GET("/fast"));
    if (front === "node") {
      t.equal((await connection.response())?.json(), "slow");
      t.equal((await connection.response())?.json(), "fast");
      connection.close();
    } else t.equal(await connection.response(), undefined);
    await connection.closed;
    t.equal((await rawRequest(port, GET("/slow")))?.json(), "slow");
  },
);

onEveryFront(t, "a port in use and an address of another machine are clear errors", async (t, serve, front) => {
  const { port, server } = await serve(t, {});
  const pipeline = new RequestPipeline({ routes: [], baseUrl: undefined, log: pino({ level: "silent" }) });
  const start = (host: string, at: number): Promise<HttpServer> =>
    startFront(front, { host, port: at, pipeline, log: pino({ level: "silent" }) });
  await t.rejects(start("127.0.0.1", port), { name: "HttpServerError", message: new RegExp(`127.0.0.1 port ${port}`) });
  await t.rejects(start("203.0.113.1", 0), { name: "HttpServerError" });
  await server.close(0);
});

onEveryFront(t, "the same over TLS, with links that say https", async (t, serve) => {
  // OpenSSL would serve with the first certificate of this chain, and without the one that most clients need.
  const halfChain = `${TEST_CERTIFICATE}${TEST_CERTIFICATE.slice(0, 400)}`;
  const files = { "cert.pem": TEST_CERTIFICATE, "key.pem": TEST_PRIVATE_KEY, "half-chain.pem": halfChain };
  // A client that waits is looked at all the time. It may read nothing for 240 turns of the event loop, and needs more for a whole answer.
  let nowMs = 0;
  const set = (look: () => void) =>
    setImmediate(() => {
      nowMs += 250;
      look();
    });
  const stallClock = { ...SYSTEM_STALL_CLOCK, set, nowMs: () => nowMs };
  const directory = t.testdir(files);
  const tls = { certPath: `${directory}/cert.pem`, keyPath: `${directory}/key.pem` };
  const big = patternStream(5_000_001);
  const handlers = {
    "/a": (request: HandlerRequest) => jsonReply(request.baseUrl),
    "/big": () => download(big.body),
    "/whole": () => jsonReply("x".repeat(16_000_000)),
  };
  const { port, server } = await serve(t, handlers, { tls, stallClock });
  const connection = await RawConnection.open(port, TEST_CERTIFICATE);
  connection.send(GET("/a"));
  t.equal((await connection.response())?.json(), "https://cell:8000");
  connection.send(GET("/big"));
  const body = (await connection.response())?.body ?? Buffer.alloc(0);
  t.equal(body.length, 5_000_001);
  t.ok(body.every((byte, position) => byte === patternByte(position)));
  connection.socket.on("data", () => {
    connection.socket.pause();
    setImmediate(() => connection.socket.resume());
  });
  connection.send(GET("/whole"));
  t.equal((await connection.response())?.body.length, 16_000_002);
  connection.send(GET("/nowhere"));
  t.equal((await connection.response())?.status, 404);
  const plain = await RawConnection.open(port);
  plain.send(GET("/a"));
  await plain.closed;
  t.equal(plain.receivedBytes, 0, "no answer without TLS");
  await server.close(0);
  await connection.closed;
  await t.rejects(serve(t, handlers, { tls: { ...tls, keyPath: tls.certPath } }), {
    name: "HttpServerError",
    message: /--tls-cert .*cannot be used/,
  });
  await t.rejects(serve(t, handlers, { tls: { ...tls, certPath: "/nowhere.pem" } }), { message: /nowhere\.pem/ });
  await t.rejects(serve(t, handlers, { tls: { ...tls, certPath: `${directory}/half-chain.pem` } }), {
    message: /cannot be used: .*half-chain\.pem: a PEM block is damaged or cut off, at line 12$/,
  });
});
