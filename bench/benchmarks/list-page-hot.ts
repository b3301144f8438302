import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Benchmark, BenchmarkContext, OpenBenchmark } from "../harness/benchmark.js";
import { fillRuns } from "../load/filled-runs.js";
import { getBody, measureHttpLoad } from "../load/http-load.js";
import { startServer } from "../load/server-process.js";
import { startService } from "../load/service-process.js";

const BARE_SERVER = fileURLToPath(new URL("../peers/bare-http-server.js", import.meta.url));
const CONNECTIONS = 32;
const SECONDS = { smoke: 1, full: 3 };
const RUNS = { smoke: 100, full: 1_000 };
const PATH = "/runs?limit=50";

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const service = await startService(context);
  const closers = [() => service.stop()];
  const close = async (): Promise<void> => {
    for (const closer of closers) await closer();
  };
  try {
    await fillRuns(service, context, RUNS[context.size]);
    const body = await getBody(service.url + PATH);
    const file = join(context.directory, "body.json");
    writeFileSync(file, body);
    const bare = await startServer("the bare server", [BARE_SERVER, file], context.profileDirectory);
    closers.push(() => bare.stop());
    if (!body.equals(await getBody(bare.url + PATH))) throw new Error("the two servers answer with different bytes");
    const measure = (url: string, pid: number) => () =>
      measureHttpLoad(context.httpClient, pid, {
        url,
        paths: [PATH],
        connections: CONNECTIONS,
        seconds: SECONDS[context.size],
        directory: context.directory,
      });
    return {
      runners: { service: measure(service.url, service.pid), "bare-uws": measure(bare.url, bare.pid) },
      notes: [
        `load by ${context.httpClient}, ${CONNECTIONS} connections; the body is ${body.length} bytes, equal on both`,
      ],
      close,
    };
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
}

export const listPageHot: Benchmark = {
  name: "list-page-hot",
  measures:
    `GET ${PATH} at 1,000 runs, again and again, over ${CONNECTIONS} connections that each keep one request in flight (closed loop), by one thread of the load ` +
    "generator; from sending a request to its whole answer. The service finds the page anew for every request and joins its 50 entries; the " +
    "peer answers any request with the same bytes, read once from a file. Both with default settings, each in its own process.",
  metric: { name: "throughput", unit: "req/s", better: "higher" },
  contestants: [
    { name: "service", description: "the service as shipped, default settings" },
    { name: "bare-uws", description: "uWebSockets.js alone, res.end with the same bytes" },
  ],
  peer: "bare-uws",
  goals: [
    {
      kind: "ratio",
      contestant: "service",
      peer: "bare-uws",
      ratio: 0.6,
      direction: "at-least",
      source: "list pages against bare uWebSockets.js",
    },
  ],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 2, measured: 15 } },
  timeoutSeconds: { smoke: 120, full: 600 },
  open,
};
