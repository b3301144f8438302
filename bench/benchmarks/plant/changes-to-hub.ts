import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../../harness/benchmark.js";
import { LatencyHistogram } from "../../harness/latency-histogram.js";
import type { ServerProcess } from "../../load/http/server-process.js";
import { startService } from "../../load/http/service-process.js";
import { StreamClients } from "../../load/live/stream-clients.js";
import { missingWithoutNats, startPlant, untilShown } from "../../load/plant/plant-store.js";
import { fillService } from "../../load/run-producer.js";

const CHANGES = { smoke: 3, full: 100 };
const RUNS = { smoke: 5, full: 100 };
const CELL = "bench-cell";

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const { size, seed } = context;
  const { store, server, hub } = await startPlant(context);
  const settings = ["--plant", server.url, "--cell", CELL];
  const service = await startService(context, undefined, { settings });
  const { client, program } = await fillService(service, seed, { steps: 4, count: RUNS[size] });
  const id = client.nextRunId();
  await client.deliver({ type: "run.create", id, program_id: program.id });
  // Once the hub shows the run, each change is one event at both.
  await untilShown(hub, RUNS[size] + 1, `&cell=${CELL}`);
  const open = async ({ url }: ServerProcess) => {
    const streams = StreamClients.start(context, url);
    await streams.open(1);
    return streams;
  };
  const streams = { cell: await open(service), hub: await open(hub) };
  let told = 0;
  const measure = async (where: keyof typeof streams): Promise<RoundSample> => {
    const latency = new LatencyHistogram();
    const startMs = performance.now();
    for (let change = 0; change < CHANGES[size]; change++) {
      told++;
      await client.deliver({ type: "event.add", run_id: id, event_type: "note", data: { told } });
      const committedMs = performance.timeOrigin + performance.now();
      const [arrivalMs = 0] = await streams[where].eventAtAll(told);
      latency.record(Math.max(0, arrivalMs - committedMs) * 1e6);
      await streams.hub.eventAtAll(told);
    }
    service.assertNothingRefused();
    return {
      value: latency.percentileNs(0.99) / 1e6,
      seconds: (performance.now() - startMs) / 1000,
      latency: latency.toData(),
      details: { "p50 ms": latency.percentileNs(0.5) / 1e6 },
    };
  };
  return {
    runners: { cell: () => measure("cell"), hub: () => measure("hub") },
    notes: [`the hub has ${store.runs} runs of ${store.cells.length} other cells`],
  };
}

export const changesToHub: Benchmark = {
  name: "changes-to-hub",
  measures:
    "From the acknowledgement of a change, which says that the cell's disk has it, to its event in GET /runs/changes of a hub over 100 cells with 10,000 runs each, " +
    `and to that of the cell itself; the 99th percentile of ${CHANGES.full} changes. The next change is sent when the hub has told the last one. Cell, server and hub ` +
    "are on one machine, and the server syncs every message.",
  metric: { name: "p99 from commit to visible", unit: "ms", better: "lower" },
  contestants: [
    { name: "cell", description: "a stream of the cell" },
    { name: "hub", description: "a stream of the hub" },
  ],
  peer: null,
  goals: [{ contestant: "hub", direction: "at-most", target: 1_000, source: "plant.md: p99 under 1 s" }],
  rounds: { warmup: 1, measured: 7 },
  timeoutSeconds: 900,
  open: missingWithoutNats(["cell", "hub"], open),
};
