/**
 * The receivers of the webhook benchmarks: one process with a port for each receiver, so that a sender takes them for different receivers.
 * `node delivery-receivers-process.js COUNT` prints `listening on http://…`, its control address, and serves until SIGTERM. GET there
 * answers `ReceiverFigures`. Every POST is read whole, counted, timed from the `timestamp` in its first bytes, and answered with 204.
 */

import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { findUws, type UwsModule } from "../../../http/server/uws-binary.js";
import { LatencyHistogram } from "../../harness/latency-histogram.js";
import type { ReceiverFigures } from "./delivery-receivers.js";

/** The first bytes of an envelope. They hold `"timestamp":"…Z"`, which comes after the event's id and name. */
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

function figures(): string {
  const latencies = { latency: latency.toData(), fewest: Math.min(...counts), most: Math.max(...counts) };
  return JSON.stringify({ ports, total, lastMs, ...latencies } satisfies ReceiverFigures);
}

function listenOnUws(uws: UwsModule): number[] {
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
    response.end(figures());
  });
  const listening: number[] = [];
  for (let i = 0; i <= count; i++) {
    app.listen("127.0.0.1", 0, (socket) => {
      if (socket === false) throw new Error("no port to listen on");
      listening.push(uws.us_socket_local_port(socket));
    });
  }
  return listening;
}

async function listenOnNode(): Promise<number[]> {
  const answer: RequestListener = (request, response) => {
    if (request.method === "GET") {
      response.end(figures());
      return;
    }
    let head: Buffer = Buffer.alloc(0);
    request.on("data", (chunk: Buffer) => {
      if (head.length === 0) head = chunk.subarray(0, HEAD_BYTES);
    });
    request.on("end", () => {
      arrived(Number(request.url?.slice(1)), head);
      response.writeHead(204).end();
    });
  };
  const servers = Array.from({ length: count + 1 }, () => createServer(answer).listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  return servers.map((server) => (server.address() as AddressInfo).port);
}

// With uWebSockets.js they take less CPU time from the service. But it does not load on every machine.
const found = findUws();
ports.push(...("uws" in found ? listenOnUws(found.uws) : await listenOnNode()));
process.stdout.write(`listening on http://127.0.0.1:${ports.pop()}\n`);
process.on("SIGTERM", () => process.exit(0));
