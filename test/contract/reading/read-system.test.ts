import t from "tap";
import { FIXTURE_VERSION } from "../../helpers/captures/recorded-cell.js";
import { FRAME, filled, PROGRAM, RUN, us } from "../../helpers/http/filled-cell.js";
import { rawRequest } from "../../helpers/http/raw-http.js";

t.test("GET /health: the rollup and its status", async (t) => {
  const { client, cell } = await filled(t);
  const row = { id: null, detail: null, enabled: null, required: true };
  cell.healthRows = [{ ...row, key: "log", status: "healthy" }];
  t.strictSame(await client.get("/health"), {
    status: "healthy",
    components: { log: { status: "healthy", id: null, detail: null, enabled: null } },
  });
  const robot = { key: "robot-1", id: "r1", detail: "homed", enabled: true, required: false };
  cell.apply(us(80), { kind: "component_put", row: { ...robot, status: "healthy" } });
  t.match(await client.get("/health"), {
    status: "healthy",
    components: { "robot-1": { status: "healthy", id: "r1", detail: "homed", enabled: true } },
  });
  for (const status of ["degraded", "down", "estopped"] as const) {
    cell.apply(us(81), { kind: "component_put", row: { ...robot, status } });
    t.match(await client.get("/health"), {
      status: "degraded",
      components: { "robot-1": { status } },
    });
  }
  for (const status of ["degraded", "estopped"] as const) {
    cell.apply(us(82), { kind: "component_put", row: { ...robot, status, required: true } });
    t.match(await client.get("/health"), { status: "degraded" });
  }
  cell.apply(us(83), { kind: "component_put", row: { ...robot, status: "down", required: true } });
  const robotDown = await client.answer("get", "/health");
  t.equal(robotDown.status, 503);
  t.match(robotDown.error, { status: "down", components: { "robot-1": { status: "down" } } });
  cell.apply(us(84), { kind: "component_deleted", key: "robot-1" });
  t.match(await client.get("/health"), { status: "healthy" });
  cell.healthRows = [{ ...row, key: "log", status: "down", detail: "disk failed" }];
  const logDown = await client.answer("get", "/health");
  t.equal(logDown.status, 503);
  t.match(logDown.error, { status: "down", components: { log: { detail: "disk failed" } } });
});

t.test("GET /system/version and /livez", async (t) => {
  const { client } = await filled(t);
  t.strictSame(await client.get("/system/version"), { "service-version": FIXTURE_VERSION });
  t.strictSame(await client.get("/livez"), { status: "alive" });
});

t.test("every path answers HEAD as GET, and 405 to all else", async (t) => {
  const { client, port } = await filled(t);
  const paths = [
    "/runs",
    "/runs/active",
    `/runs/${RUN}`,
    `/programs/${PROGRAM}/runs`,
    "/programs",
    `/programs/${PROGRAM}`,
    `/runs/${RUN}/quality-report`,
    `/runs/${RUN}/defects`,
    `/runs/${RUN}/files`,
    `/runs/${RUN}/files/empty.txt`,
    `/sensor/frames/${FRAME}`,
    `/sensor/frames/${FRAME}/files`,
    `/sensor/frames/${FRAME}/file.npy`,
    "/health",
    "/system/version",
    "/openapi.json",
    "/livez",
  ];
  for (const path of paths) {
    const get = await client.raw("GET", path);
    const head = await rawRequest(port, `HEAD ${path} HTTP/1.1\r\nHost: cell:8000\r\n\r\n`, "HEAD");
    t.equal(head?.status, 200, path);
    t.equal(head?.headers["content-length"], String(get.body.length), path);
    t.equal(head?.headers["content-type"], get.headers["content-type"], path);
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
      const response = await rawRequest(port, `${method} ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`);
      t.equal(response?.status, 405, `${method} ${path}`);
      t.equal(response?.headers.allow, "GET, HEAD, OPTIONS");
      t.match(response?.json(), { code: "method_not_allowed", params: { method } });
    }
  }
});
