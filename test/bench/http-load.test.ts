import { once } from "node:events";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import t, { type Test } from "tap";
import { HttpConnection } from "../../bench/load/http/http-connection.js";
import { getBody, measureHttpLoad } from "../../bench/load/http/http-load.js";
import { startServer } from "../../bench/load/http/server-process.js";

async function listen(t: Test, server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function serveHttp(t: Test, listener: RequestListener): Promise<string> {
  return listen(t, createHttpServer(listener));
}

/** Answers every request with these chunks, one after the other. */
function serveBytes(t: Test, chunks: readonly string[]): Promise<string> {
  const server = createServer((socket) => {
    socket.setNoDelay(true);
    socket.on("error", () => {});
    socket.on("data", async () => {
      for (const chunk of chunks) {
        socket.write(chunk);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    });
  });
  return listen(t, server);
}

async function connectTo(t: Test, url: string): Promise<HttpConnection> {
  const connection = await HttpConnection.open(url);
  t.teardown(() => connection.close());
  return connection;
}

t.test("a load reports what the server saw", async (t) => {
  let seen = 0;
  const url = await serveHttp(t, (request, response) => {
    t.equal(request.url, "/a?x=1");
    seen++;
    response.end("0123456789");
  });
  const sample = await measureHttpLoad({ url, pid: process.pid }, "/a?x=1", { connections: 4, size: "smoke" });
  t.equal(seen, 8);
  t.equal(Math.round((sample.details?.["req/s"] ?? 0) * sample.seconds), seen, "each answer is reported");
  t.ok(sample.value > 0 && sample.value <= 100 * seen, "by CPU time, of which 10 ms are the least that is known");
  t.equal(sample.latency?.count, seen);
  t.equal(Math.round((sample.details?.["bodies MB/s"] ?? 0) * sample.seconds * 1e6), 80);
});

t.test("an answer that is an error makes no measurement", async (t) => {
  const url = await serveHttp(t, (_request, response) => {
    response.statusCode = 500;
    response.end();
  });
  const load = measureHttpLoad({ url, pid: process.pid }, "/", { connections: 2, size: "smoke" });
  await t.rejects(load, { message: "GET / answered 500" });
});

t.test("an answer may come in chunks: within its head, within its body, both at once", async (t) => {
  const head = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n";
  for (const chunks of [
    [`${head}abcdef`],
    [head.slice(0, 9), head.slice(9, -2), `${head.slice(-2)}abc`, "def"],
    [head, "abc", "def"],
  ]) {
    const connection = await connectTo(t, await serveBytes(t, chunks));
    for (let nth = 0; nth < 2; nth++) {
      const startMs = performance.now();
      const { bodyBytes, firstByteMs } = await connection.get("/");
      t.equal(bodyBytes, 6);
      t.ok(firstByteMs >= startMs && firstByteMs <= performance.now());
    }
  }
});

t.test("what is no whole answer is an error that says so", async (t) => {
  const faults: [chunks: string[], message: RegExp][] = [
    [["HTTP/1.1 200 OK\r\n\r\n"], /GET \/x answered no Content-Length/],
    [["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc"], /longer than its Content-Length/],
    [["x".repeat(9_000)], /no end of the header within 8192 bytes/],
  ];
  for (const [chunks, message] of faults) {
    const connection = await connectTo(t, await serveBytes(t, chunks));
    await t.rejects(connection.get("/x"), message);
    await t.rejects(connection.get("/x"), message, "nothing more can be asked");
  }
  const url = await listen(
    t,
    createServer((socket) => socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na"))),
  );
  await t.rejects((await connectTo(t, url)).get("/"), /the server closed the connection/);
});

t.test("a server that ends before it listens is an error with its last words", async (t) => {
  await t.rejects(
    startServer({ onClose() {} }, "the broken one", ["-e", "console.error('no room'); process.exit(3)"]),
    /the broken one ended with 3 before it listened; its last words:\nno room/,
  );
});

t.test("a server is stopped at the benchmark's end, and one that does not end cleanly fails it", async (t) => {
  const closers: (() => unknown)[] = [];
  const program = `const server = require("node:http").createServer((_, response) => response.end("here"));
    server.listen(0, "127.0.0.1", () => console.log("listening on http://127.0.0.1:" + server.address().port));
    process.on("SIGTERM", () => process.exit(4));`;
  const context = { onClose: (closer: () => unknown) => closers.push(closer) };
  const { url } = await startServer(context, "the rude one", ["-e", program]);
  t.equal((await getBody(url)).toString(), "here");
  t.equal(closers.length, 1);
  await t.rejects(async () => closers[0]?.(), /the rude one ended with 4/);
  await t.rejects(getBody(url), /ECONNREFUSED/);
});
