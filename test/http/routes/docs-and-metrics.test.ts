import t from "tap";
import { exampleCell } from "../../helpers/example-cell.js";
import { rawRequest } from "../../helpers/http/raw-http.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";

const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

t.test("the page of /docs and all that it loads come from the service", async (t) => {
  const cell = exampleCell();
  const port = await cell.listenFor(t);
  const page = await rawRequest(port, request("/docs"));
  t.equal(page?.headers["content-type"], "text/html; charset=utf-8");
  t.match(page?.headers["content-security-policy"], /default-src 'self'/);
  const html = page?.body.toString() ?? "";
  const loaded = [...html.matchAll(/(?:href|src)="([^"]+)"/g)].map((match) => match[1] as string);
  t.ok(loaded.length >= 4);
  for (const path of loaded) {
    t.notMatch(path, /^(?:https?:)?\/\//, "nothing from elsewhere");
    const file = await rawRequest(port, request(`/${path}`));
    t.equal(file?.status, 200, path);
    t.ok((file?.body.length ?? 0) > 100);
  }
  const start = (await rawRequest(port, request("/docs/start.js")))?.body.toString() ?? "";
  t.match(start, /url: "openapi\.json".*validatorUrl: null/, "the page asks nobody else to check the document");
  t.match(start, /defaultModelExpandDepth: 12/, "a schema shows the descriptions of its properties");
});

t.test(
  "/metrics tells of requests, ingest, log and process in the Prometheus format, with bounded labels",
  async (t) => {
    const service = await ServiceProcess.startFor(t);
    const ask = (path: string, method = "GET") =>
      rawRequest(service.port, request(path).replace("GET", method), method);
    for (let n = 0; n < 20; n++) {
      await ask(`/runs/unknown-${n}`);
      await ask(`/nowhere-${n}`);
      await ask("/livez");
    }
    await ask("/x", "PURGE");
    const answer = await ask("/metrics");
    t.equal(answer?.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    const text = answer?.body.toString() ?? "";
    const value = (line: string) =>
      Number(new RegExp(`^${line.replace(/[{}]/g, "\\$&")} (\\S+)$`, "m").exec(text)?.[1]);
    const count = "inspection_http_request_duration_seconds_count";
    t.equal(value(`${count}{method="GET",route="/runs/{run_id}",status="404"}`), 20);
    t.equal(value(`${count}{method="GET",route="none",status="404"}`), 20, "paths that clients make up have one label");
    t.equal(value(`${count}{method="GET",route="/livez",status="200"}`), 20);
    const bucket =
      'inspection_http_request_duration_seconds_bucket{method="GET",route="/livez",status="200",le="+Inf"}';
    t.equal(value(bucket.replace("+", "\\+")), 20);
    t.notMatch(text, /unknown-|nowhere-/);
    t.ok(value("inspection_log_bytes") > 0);
    t.equal(value("inspection_runs"), 0);
    t.equal(value("inspection_ingest_messages_total"), 0);
    t.equal(value("inspection_ingest_commit_duration_seconds_count"), 0);
    t.ok(value("nodejs_eventloop_lag_seconds") >= 0);
    for (const line of text.split("\n")) t.match(line, /^(?:#.*|[a-z_][a-zA-Z0-9_]*(?:\{.*\})? [-+.\dA-Za-z]+|)$/);
  },
);
