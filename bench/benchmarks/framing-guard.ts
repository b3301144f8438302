import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findUws, fullReason } from "../../http/server/uws-binary.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark } from "../harness/benchmark.js";
import { loadEnd, measureHttpLoad } from "../load/http/http-load.js";
import { startServer } from "../load/http/server-process.js";

const BARE_SERVER = fileURLToPath(new URL("../peers/bare-http-server.js", import.meta.url));
const CONNECTIONS = 32;
const SECONDS = 3;
const BODY_BYTES = 4_000;

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const found = findUws();
  if (!("uws" in found)) {
    const missing = ["guarded", "bare"].map((name) => ({ name, why: fullReason(found) }));
    return { runners: {}, missing, notes: [], close: async () => {} };
  }
  const file = join(context.directory, "body.json");
  writeFileSync(file, "x".repeat(BODY_BYTES));
  const start = (...options: string[]) =>
    startServer("the bare server", [BARE_SERVER, file, ...options], context.profileDirectory);
  const servers = { guarded: await start("--guarded"), bare: await start() };
  return {
    runners: Object.fromEntries(
      Object.entries(servers).map(([name, { url, pid }]) => [
        name,
        () =>
          measureHttpLoad(context.httpClient, pid, {
            url,
            paths: ["/runs"],
            connections: CONNECTIONS,
            until: loadEnd(context.size, SECONDS),
            directory: context.directory,
          }),
      ]),
    ),
    notes: [`load by ${context.httpClient}, ${CONNECTIONS} connections; ${BODY_BYTES} bytes an answer`],
    close: async () => {
      for (const server of Object.values(servers)) await server.stop();
    },
  };
}

export const framingGuard: Benchmark = {
  name: "framing-guard",
  measures:
    `what the framing guard costs a request: uWebSockets.js that answers any GET with ${BODY_BYTES} bytes, with and without copying all header lines and ` +
    `holding them against the rules first, over ${CONNECTIONS} connections that each keep one request in flight (closed loop), by one thread of the ` +
    "load generator; from sending a request to its whole answer.",
  metric: { name: "throughput", unit: "req/s", better: "higher" },
  contestants: [
    { name: "guarded", description: "every header line copied and judged" },
    { name: "bare", description: "the same without" },
  ],
  peer: "bare",
  goals: [
    {
      kind: "ratio",
      contestant: "guarded",
      peer: "bare",
      ratio: 0.95,
      direction: "at-least",
      source: "the guard's cost is within the noise",
    },
  ],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 2, measured: 15 } },
  timeoutSeconds: { smoke: 60, full: 600 },
  open,
};
