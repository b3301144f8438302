import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createRandom } from "../../core/random.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark } from "../harness/benchmark.js";
import { getBody, measureHttpLoad } from "../load/http-load.js";
import { produceRun, putPrograms, waitUntil } from "../load/run-producer.js";
import { startServer } from "../load/server-process.js";
import { startService } from "../load/service-process.js";

const BARE_SERVER = fileURLToPath(new URL("../peers/bare-http-server.js", import.meta.url));
const CONNECTIONS = 32;
const SECONDS = { smoke: 1, full: 3 };
const STEPS = 12;

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const service = await startService(context);
  const closers = [() => service.stop()];
  const close = async (): Promise<void> => {
    for (const closer of closers) await closer();
  };
  try {
    const client = await service.connect("bench");
    const [program] = await putPrograms(client, 1, STEPS);
    if (program === undefined) throw new Error("no program was put");
    const id = await produceRun(client, createRandom(context.seed), {
      program,
      serialNumber: "SN-000001",
      outcome: "completed",
      steps: STEPS,
      events: 8,
      checks: 6,
    });
    await client.close();
    service.assertNothingRefused();
    const path = `/runs/${id}`;
    await waitUntil(
      "the run's end",
      async () => JSON.parse((await getBody(service.url + path)).toString()).status === "completed",
    );

    const body = await getBody(service.url + path);
    const file = join(context.directory, "body.json");
    writeFileSync(file, body);
    const bare = await startServer("the bare server", [BARE_SERVER, file], context.profileDirectory);
    closers.push(() => bare.stop());
    if (!body.equals(await getBody(bare.url + path))) throw new Error("the two servers answer with different bytes");

    const measure = (url: string, pid: number) => () =>
      measureHttpLoad(context.httpClient, pid, {
        url,
        paths: [path],
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

export const runDetailHot: Benchmark = {
  name: "run-detail-hot",
  measures:
    `GET /runs/{id} of one finished run (${STEPS} steps, event log, metadata), again and again, over ${CONNECTIONS} connections that each keep ` +
    "one request in flight (closed loop), by one thread of the load generator. Clock of the load generator: from sending a request " +
    "to its whole answer. The peer answers any request with the same bytes, read once from a file: what the server library and " +
    "the kernel cost. Both with default settings, each in its own process; the service does all that it does in production (routing, " +
    "framing checks, trace id, headers; request lines of the log are off by default).",
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
      ratio: 0.7,
      direction: "at-least",
      source: "goal of the spine: run detail hot against bare uWebSockets.js",
    },
  ],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 2, measured: 15 } },
  timeoutSeconds: { smoke: 90, full: 600 },
  open,
};
