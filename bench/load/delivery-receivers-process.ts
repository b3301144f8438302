/**
 * The receivers of the webhook benchmarks: one process, a port for each receiver, so that each is one of its own to whoever posts.
 * `node delivery-receivers-process.js COUNT` prints `listening on http://…`, its control address, and serves until SIGTERM. GET there
 * answers `ReceiverFigures`. Every POST is read whole, counted, timed from the `timestamp` in its first bytes, and answered with 204.
 */

import { requireUws } from "../../http/uws-binary.js";
import { LatencyHistogram } from "../harness/latency-histogram.js";
import type { ReceiverFigures } from "./delivery-receivers.js";

/** Where `"timestamp":"…Z"` stands in an envelope: behind the event's id and name. */
const HEAD_BYTES = 200;
const TIMESTAMP = /"timestamp":"([^"]+)"/;

const count = Number(process.argv[2]);
const counts = new Array<number>(count).fill(0);
const ports: number[] = [];
const latency = new LatencyHistogram();
let total = 0;
let lastMs = 0;

function arrived(receiver: number, body: Buffer): void {
  const nowMs = performance.timeOrigin + performance.now();
  const [, timestamp = ""] = TIMESTAMP.exec(body.toString("latin1")) ?? [];
  latency.record((nowMs - Date.parse(timestamp)) * 1e6);
  counts[receiver] = (counts[receiver] as number) + 1;
  total++;
  lastMs = nowMs;
}

const { uws } = requireUws();
const app = uws.App();
app.post("/*", (response, request) => {
  const receiver = Number(request.getUrl().slice(1));
  let head: Buffer | undefined;
  response.onAborted(() => {});
  response.onData((chunk, isLast) => {
    head ??= Buffer.from(chunk.slice(0, HEAD_BYTES));
    if (!isLast) return;
    arrived(receiver, head);
    response.writeStatus("204 No Content").endWithoutBody();
  });
});
app.get("/*", (response) => {
  const figures: ReceiverFigures = {
    ...{ ports, total, lastMs, latency: latency.toData() },
    ...{ fewest: Math.min(...counts), most: Math.max(...counts) },
  };
  response.end(JSON.stringify(figures));
});
for (let i = 0; i <= count; i++) {
  app.listen("127.0.0.1", 0, (socket) => {
    if (socket === false) throw new Error("no port to listen on");
    ports.push(uws.us_socket_local_port(socket));
  });
}
process.stdout.write(`listening on http://127.0.0.1:${ports.pop()}\n`);
process.on("SIGTERM", () => process.exit(0));
