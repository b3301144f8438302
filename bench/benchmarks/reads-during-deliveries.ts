import type { Benchmark, BenchmarkContext, OpenBenchmark } from "../harness/benchmark.js";
import { openWebhookScene } from "../load/events/webhook-events.js";
import { alternatingSlices, READS, READS_PER_SECOND, type ReadSlices, readsBeside } from "../load/http/read-slices.js";
import { paced } from "../load/run-producer.js";

const RUNS = { smoke: 10, full: 2_000 };
const SLICE_SECONDS = { smoke: 0.1, full: 0.75 };
const SLICES = { smoke: 1, full: 8 };
/** Far more than a cell sends: a run every 0.2 s, delivered to every receiver. */
const PACED_EVENTS_PER_SECOND = 5;
/** Sent at once when a slice begins: more deliveries than can be made within it. */
const FLAT_OUT_EVENTS = { smoke: 2, full: 60 };
const LOADS = ["quiet", "paced", "flat-out"] as const;

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const { size } = context;
  const { receivers, service, webhooks, runIds, produce, settled } = await openWebhookScene(context, RUNS[size]);
  const count = Math.round(SLICE_SECONDS[size] * READS_PER_SECOND);
  const measureSlice = async (load: (typeof LOADS)[number], slices: ReadSlices): Promise<void> => {
    if (load === "quiet") return slices.read(service.url, runIds, count);
    const before = await receivers.figures();
    const startMs = performance.timeOrigin + performance.now();
    const stop = new AbortController();
    const pacing = load === "paced" ? paced(PACED_EVENTS_PER_SECOND, stop.signal, () => produce(1)) : undefined;
    if (load === "flat-out") await produce(FLAT_OUT_EVENTS[size]);
    await slices.read(service.url, runIds, count);
    stop.abort();
    const events = (await pacing) ?? FLAT_OUT_EVENTS[size];
    const { total, lastMs } = await receivers.received(before, events);
    slices.addLoad("deliveries 1/s", total, (lastMs - startMs) / 1000);
    await settled();
  };
  return {
    runners: alternatingSlices(LOADS, SLICES[size], measureSlice),
    notes: [`${runIds.length} runs in the store, ${webhooks} webhooks`],
  };
}

export const readsDuringDeliveries: Benchmark = readsBeside({
  name: "reads-during-deliveries",
  measures:
    `${READS} There are three kinds of slices. In a quiet one nothing is delivered. In a paced one there are ${PACED_EVENTS_PER_SECOND} events a second, to which ` +
    `200 webhooks subscribe. In a flat-out one there are ${FLAT_OUT_EVENTS.full} such events at once when it begins, and their deliveries take longer than it. ` +
    "The next slice begins when the service rests, so work that it has put off is not measured. " +
    `A slice takes ${SLICE_SECONDS.full} s, and a round has ${SLICES.full} of each kind.`,
  contestants: [
    { name: "quiet", description: "no deliveries" },
    { name: "paced", description: `${PACED_EVENTS_PER_SECOND} events to 200 webhooks a second` },
    { name: "flat-out", description: "as many deliveries as the dispatcher makes" },
  ],
  goal: { target: 2, source: "p99 of reads beside deliveries at most 2 times the quiet one" },
  timeoutSeconds: 900,
  open,
});
