import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import t from "tap";
import type { HttpClient } from "../../bench/load/http/http-client.js";
import { getBody, loadEnd, measureHttpLoad } from "../../bench/load/http/http-load.js";
import { startServer } from "../../bench/load/http/server-process.js";
import { HAS_UWS } from "../helpers/http/fronts-here.js";

const BARE_SERVER = "dist/bench/peers/bare-http-server.js";
const HAS_WRK = spawnSync("wrk", ["--version"], { stdio: "ignore" }).error === undefined;
const CLIENTS: readonly [HttpClient, { skip: string } | object][] = [
  ["autocannon", {}],
  ["wrk", HAS_WRK ? {} : { skip: "wrk is not installed" }],
];

for (const [client, options] of CLIENTS) {
  t.test(`${client} loads a server and reports what the server saw`, options, async (t) => {
    const directory = t.testdir();
    const seen = new Map<string, number>();
    const server = createServer((request, response) => {
      seen.set(request.url ?? "", (seen.get(request.url ?? "") ?? 0) + 1);
      response.end("0123456789");
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    t.teardown(() => server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const paths = ["/a?x=1", '/b"quoted', "/c"];
    const sample = await measureHttpLoad(client, process.pid, {
      url,
      paths,
      connections: 4,
      until: { seconds: 1 },
      directory,
    });
    const total = [...seen.values()].reduce((sum, count) => sum + count, 0);
    const reported = sample.value * sample.seconds;
    // Requests under way when the time is up are seen by the server only.
    t.ok(reported > 0 && reported <= total + 0.5 && total - reported <= 8.5, `${reported} reported, ${total} seen`);
    t.strictSame([...seen.keys()].sort(), [...paths].sort(), "every path is asked for");
    const counts = [...seen.values()];
    t.ok(Math.max(...counts) - Math.min(...counts) <= 16, `in turn: ${counts}`);
    t.ok((sample.latency?.count ?? 0) > 0 && (sample.latency?.maximumNs ?? 0) > 0);
    t.ok((sample.details?.["client CPU %"] ?? 0) > 0);
  });

  t.test(`${client}: answers that are errors make no measurement`, options, async (t) => {
    const server = createServer((_request, response) => {
      response.statusCode = 500;
      response.end();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    t.teardown(() => server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const request = { url, paths: ["/"], connections: 2, until: { seconds: 1 }, directory: t.testdir() };
    await t.rejects(measureHttpLoad(client, process.pid, request), /requests to .* failed/);
  });
}

t.test("autocannon: a round that answers end waits for them, however long the first one takes", async (t) => {
  // Longer than autocannon's sample, at which it looks whether it is at its end.
  const opened = new Promise((resolve) => setTimeout(resolve, 1500));
  let seen = 0;
  const server = createServer((_request, response) => {
    seen++;
    void opened.then(() => response.end("0123456789"));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const until = loadEnd("smoke", 1);
  const request = { url, paths: ["/"], connections: 3, until, directory: t.testdir() };
  const { value, seconds, latency } = await measureHttpLoad("autocannon", process.pid, request);
  t.equal(seen, "answersPerConnection" in until ? 3 * until.answersPerConnection : Number.NaN);
  t.equal(Math.round(value * seconds), seen, "each of them is reported");
  t.equal(latency?.count, seen);
});

t.test("figures are of time, in whole seconds", (t) => {
  t.strictSame(loadEnd("full", 3), { seconds: 3 });
  t.end();
});

const noUws = HAS_UWS ? {} : { skip: "no build of uWebSockets.js loads here" };
t.test("the bare server answers every path with its file and ends cleanly", noUws, async (t) => {
  const file = join(t.testdir(), "body");
  const body = Buffer.from(Array.from({ length: 5000 }, (_, i) => i % 251));
  writeFileSync(file, body);
  const server = await startServer("the bare server", [BARE_SERVER, file], null);
  t.ok(body.equals(await getBody(`${server.url}/runs/anything`)));
  await server.stop();
  await t.rejects(getBody(server.url), /ECONNREFUSED/);
});

t.test("a server that ends before it listens is an error with its last words", async (t) => {
  await t.rejects(
    startServer("the broken one", ["-e", "console.error('no room'); process.exit(3)"], null),
    /the broken one ended with 3 before it listened; its last words:\nno room/,
  );
});
