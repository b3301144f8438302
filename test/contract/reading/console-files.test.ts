import { brotliDecompressSync, gunzipSync } from "node:zlib";
import t, { type Test } from "tap";
import { someFronts } from "../../helpers/http/fronts-here.js";
import { type RawResponse, rawRequest } from "../../helpers/http/raw-http.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";

const PREFIX_OPTIONS = ["serve", "--base-url", "https://mes.example/cells/7"];

type Get = (path: string, headers?: Readonly<Record<string, string>>, method?: string) => Promise<RawResponse>;

for (const { name: front, environment } of someFronts(t)) {
  t.test(`the console's files need no key and come in the client's coding (${front})`, async (t) => {
    const service = await ServiceProcess.startFor(t, { environment });
    const get: Get = async (path, headers = {}, method = "GET") => {
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      const answer = await rawRequest(
        service.port,
        `${method} ${path} HTTP/1.1\r\nHost: x\r\n${lines.join("")}\r\n`,
        method,
      );
      if (answer === undefined) throw new Error(`${path}: no answer`);
      return answer;
    };

    t.same((await get("/")).json(), {
      links: Object.fromEntries(
        Object.entries({
          console: "/console",
          docs: "/docs",
          openapi: "/openapi.json",
          runs: "/runs",
          health: "/health",
        }).map(([name, path]) => [name, { href: `http://x${path}`, method: "GET" }]),
      ),
    });
    const root = await get("/", { Accept: "text/html,application/xhtml+xml,*/*;q=0.8" });
    t.equal(root.headers["content-type"], "text/html; charset=utf-8");
    t.match(root.headers.vary, /Accept(?:,|$)/m, "a cache keeps page and links apart");
    const html = root.body.toString();
    for (const accept of ["text/html;q=0", "text/html ; Q=0.000, application/json", "text/html5"]) {
      t.equal((await get("/", { Accept: accept })).headers["content-type"], "application/json", accept);
    }
    t.equal(
      (await get("/", { Accept: "*/*, text/html;level=1;q=0.1" })).headers["content-type"],
      "text/html; charset=utf-8",
    );

    const id = "019b76da-a800-7000-8000-000000000001";
    const there = ["", "/", "/now", "/runs", "/runs/", `/runs/${id}`, `/frames/${id}`, "/system"];
    const missing = ["/nowhere", "/toString", "/frames", `/system/${id}`, `/nowhere/${id}`, "/runs/1/2"];
    for (const path of [...there, ...missing]) {
      const page = await get(`/console${path}`);
      t.equal(page.status, there.includes(path) ? 200 : 404, path);
      t.equal(page.body.toString(), html, `${path}: the page itself says what there is not`);
      t.equal(page.headers["cache-control"], "no-cache");
      const policy = String(page.headers["content-security-policy"]);
      t.match(policy, /default-src 'none'; script-src 'self'; style-src 'self';/);
      t.notMatch(policy, /unsafe|http|\*/, "no inline script, no other origin");
    }
    const unchanged = await get("/console", { "If-None-Match": String((await get("/console")).headers.etag) });
    t.equal(unchanged.status, 304);
    t.equal(unchanged.headers["cache-control"], "no-cache", "what a cache needs, as in the 200");
    const sameRoot = await get("/", { Accept: "text/html", "If-None-Match": String(root.headers.etag) });
    t.equal(sameRoot.status, 304);
    t.match(sameRoot.headers.vary, /Accept(?:,|$)/m);

    await comesInCodings(t, get, html);
    for (const path of ["/console/assets/gone.js", "/console/assets/..%2Findex.html", "/console/assets"]) {
      t.match((await get(path)).json(), { code: "route_not_found" }, path);
    }
    t.equal((await get("/console", { Host: "evil.example" })).status, 400, "two hosts");
    t.equal((await rawRequest(service.port, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"))?.status, 421);
  });
}

/** What the page loads is there in each coding, and may be kept. */
async function comesInCodings(t: Test, get: Get, html: string): Promise<void> {
  const loaded = [...html.matchAll(/(?:href|src)="\.\/(assets\/[^"]+)"/g)].map(([, path]) => `/console/${path}`);
  t.ok(loaded.length >= 3);
  for (const path of loaded) {
    const plain = await get(path);
    t.equal(plain.status, 200, path);
    t.match(plain.headers["cache-control"], /immutable/);
    t.match(path, /-[\w-]{8}\.(?:js|css|svg)$/, "the name has a hash");
    for (const [accepted, coding, decoded] of [
      ["gzip, deflate, br", "br", brotliDecompressSync],
      ["gzip", "gzip", gunzipSync],
      ["br;q=0, gzip", "gzip", gunzipSync],
    ] as const) {
      const coded = await get(path, { "Accept-Encoding": accepted });
      t.equal(coded.headers["content-encoding"], coding, `${path}: ${accepted}`);
      t.match(coded.headers.vary, /Accept-Encoding/);
      t.equal(coded.headers["content-type"], plain.headers["content-type"]);
      t.ok(decoded(coded.body).equals(plain.body));
      t.ok(coded.body.length < plain.body.length);
      const head = await get(path, { "Accept-Encoding": accepted }, "HEAD");
      t.equal(head.headers["content-length"], String(coded.body.length));
    }
  }
}

t.test("below a path of a proxy the page finds its files and the interface there", async (t) => {
  const service = await ServiceProcess.startFor(t, { args: PREFIX_OPTIONS });
  const page = await rawRequest(service.port, "GET /console HTTP/1.1\r\nHost: x\r\n\r\n");
  t.match(page?.body.toString(), /<base href="\/cells\/7\/console\/"\s*\/?>/);
});
