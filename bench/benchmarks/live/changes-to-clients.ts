import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../../harness/benchmark.js";
import { atMost } from "../../harness/goal.js";
import { LatencyHistogram } from "../../harness/latency-histogram.js";
import { p99Sample } from "../../harness/latency-sample.js";
import { type ServiceProcess, startService } from "../../load/http/service-process.js";
import { StreamClients } from "../../load/live/stream-clients.js";
import { missingWithoutNats, startPlant, untilShown } from "../../load/plant/plant-store.js";
import { beginChanges, fillService } from "../../load/run-producer.js";

const STREAMS = { smoke: 4, full: 200 };
const CHANGES = { smoke: 3, full: 100 };
const RUNS = { smoke: 5, full: 500 };
const CELL = "bench-cell";

async function openStreams(context: BenchmarkContext, url: string, count: number): Promise<StreamClients> {
  const streams = StreamClients.start(context, url);
  await streams.open(count);
  return streams;
}

/**
 * Changes a run, and times each change from its acknowledgement to its event at the streams of one contestant. The next change is sent when all
 * streams of all contestants have told the last one.
 */
function timeChanges(
  context: BenchmarkContext,
  service: ServiceProcess,
  change: (nth: number) => Promise<void>,
  streams: Record<string, StreamClients>,
): OpenBenchmark["runners"] {
  let told = 0;
  const measure = async (timed: StreamClients): Promise<RoundSample> => {
    const latency = new LatencyHistogram();
    const startMs = performance.now();
    for (let nth = 0; nth < CHANGES[context.size]; nth++) {
      await change(++told);
      const committedMs = performance.timeOrigin + performance.now();
      for (const arrivalMs of await timed.eventAtAll(told)) {
        // The answer to the producer and the event to a client are on their way at the same time.
        latency.record(Math.max(0, arrivalMs - committedMs) * 1e6);
      }
      for (const others of Object.values(streams)) await others.eventAtAll(told);
    }
    service.assertNothingRefused();
    return p99Sample(latency, startMs);
  };
  return Object.fromEntries(Object.entries(streams).map(([name, timed]) => [name, () => measure(timed)]));
}

async function openClients(context: BenchmarkContext): Promise<OpenBenchmark> {
  const { size, seed } = context;
  const service = await startService(context);
  const { client, program } = await fillService(service, seed, { steps: 4, count: RUNS[size] });
  const change = await beginChanges(client, program);
  const streams = await openStreams(context, service.url, STREAMS[size]);
  return {
    runners: timeChanges(context, service, change, { streams }),
    notes: [`${STREAMS[size]} streams, the service serves on ${service.front}`],
  };
}

async function openHub(context: BenchmarkContext): Promise<OpenBenchmark> {
  const { size, seed } = context;
  const { store, server, hub } = await startPlant(context);
  const settings = ["--plant", server.url, "--cell", CELL];
  const service = await startService(context, undefined, { settings });
  const { client, program } = await fillService(service, seed, { steps: 4, count: RUNS[size] });
  const change = await beginChanges(client, program);
  // Once the hub shows the run, each change is one event at both.
  await untilShown(hub, RUNS[size] + 1, `&cell=${CELL}`);
  const streams = { cell: await openStreams(context, service.url, 1), hub: await openStreams(context, hub.url, 1) };
  return {
    runners: timeChanges(context, service, change, streams),
    notes: [`the hub has ${store.runs} runs of ${store.cells.length} other cells`],
  };
}

export const changesToClients: Benchmark = {
  name: "changes-to-clients",
  measures:
    `From the acknowledgement of a change, which says that it is durable, to its event at each of ${STREAMS.full} streams of GET /runs/changes; the 99th percentile of all ` +
    `streams and ${CHANGES.full} changes. The next change is sent when all streams have the last one. One process reads all streams.`,
  metric: { name: "p99 from commit to client", unit: "ms", better: "lower" },
  contestants: [{ name: "streams", description: `${STREAMS.full} streams without a filter` }],
  peer: null,
  goals: [atMost("streams", 50, "live.md: p99 under 50 ms")],
  rounds: { warmup: 1, measured: 7 },
  timeoutSeconds: 600,
  open: openClients,
};

export const changesToHub: Benchmark = {
  name: "changes-to-hub",
  measures:
    "From the acknowledgement of a change, which says that the cell's disk has it, to its event in GET /runs/changes of a hub over 100 cells with 10,000 runs each, " +
    `and to that of the cell itself; the 99th percentile of ${CHANGES.full} changes. The next change is sent when both have told the last one. Cell, server and hub ` +
    "are on one machine, and the server syncs every message.",
  metric: { name: "p99 from commit to visible", unit: "ms", better: "lower" },
  contestants: [
    { name: "cell", description: "a stream of the cell" },
    { name: "hub", description: "a stream of the hub" },
  ],
  peer: null,
  goals: [atMost("hub", 1_000, "plant.md: p99 under 1 s")],
  rounds: { warmup: 1, measured: 7 },
  timeoutSeconds: 900,
  open: missingWithoutNats(["cell", "hub"], openHub),
};
