import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../../harness/benchmark.js";
import { LatencyHistogram } from "../../harness/latency-histogram.js";
import { startService } from "../../load/http/service-process.js";
import { StreamClients } from "../../load/live/stream-clients.js";
import { fillService } from "../../load/run-producer.js";

const STREAMS = { smoke: 4, full: 200 };
const CHANGES = { smoke: 3, full: 100 };
const RUNS = { smoke: 5, full: 500 };
const STEPS = 4;

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const { size } = context;
  const service = await startService(context);
  const { client, program } = await fillService(service, context.seed, { steps: STEPS, count: RUNS[size] });
  const id = client.nextRunId();
  await client.deliver({ type: "run.create", id, program_id: program.id });
  const streams = StreamClients.start(context, service.url);
  await streams.open(STREAMS[size]);
  let told = 0;

  const measure = async (): Promise<RoundSample> => {
    const latency = new LatencyHistogram();
    const startMs = performance.now();
    for (let change = 0; change < CHANGES[size]; change++) {
      told++;
      await client.deliver({ type: "event.add", run_id: id, event_type: "note", data: { told } });
      const committedMs = performance.timeOrigin + performance.now();
      for (const arrivalMs of await streams.eventAtAll(told)) {
        // The answer to the producer and the event to a client are on their way at the same time.
        latency.record(Math.max(0, arrivalMs - committedMs) * 1e6);
      }
    }
    service.assertNothingRefused();
    return {
      value: latency.percentileNs(0.99) / 1e6,
      seconds: (performance.now() - startMs) / 1000,
      latency: latency.toData(),
      details: { "p50 ms": latency.percentileNs(0.5) / 1e6 },
    };
  };
  return { runners: { streams: measure }, notes: [`${STREAMS[size]} streams, the service serves on ${service.front}`] };
}

export const changesToClients: Benchmark = {
  name: "changes-to-clients",
  measures:
    `From the acknowledgement of a change, which says that it is durable, to its event at each of ${STREAMS.full} streams of GET /runs/changes; the 99th percentile of all ` +
    `streams and ${CHANGES.full} changes. The next change is sent when all streams have the last one. One process reads all streams.`,
  metric: { name: "p99 from commit to client", unit: "ms", better: "lower" },
  contestants: [{ name: "streams", description: `${STREAMS.full} streams without a filter` }],
  peer: null,
  goals: [{ contestant: "streams", direction: "at-most", target: 50, source: "live.md: p99 under 50 ms" }],
  rounds: { warmup: 1, measured: 7 },
  timeoutSeconds: 600,
  open,
};
