import { createRandom } from "../../core/random.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../harness/benchmark.js";
import { LatencyHistogram } from "../harness/latency-histogram.js";
import { runOpenLoop } from "../harness/open-loop.js";
import { type ReceiverFigures, startDeliveryReceivers } from "../load/events/delivery-receivers.js";
import { produceEvents, settled, stampedNow, subscribe } from "../load/events/webhook-events.js";
import { startService } from "../load/http/service-process.js";
import { putPrograms } from "../load/run-producer.js";
import { startPlainPosts } from "../peers/plain-posts.js";

const WEBHOOKS = { smoke: 5, full: 200 };
const EVENTS = { smoke: 4, full: 200 };
const EVENTS_PER_SECOND = { smoke: 20, full: 10 };

/** The p99, which is what a round tells. */
function toSample({ latency }: ReceiverFigures, seconds: number): RoundSample {
  const all = new LatencyHistogram();
  all.add(latency);
  return { value: all.percentileNs(0.99) / 1e6, seconds, latency };
}

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const { size, seed } = context;
  const closers: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).reverse()) await closer();
  };
  try {
    const receivers = await startDeliveryReceivers(context, WEBHOOKS[size]);
    closers.push(() => receivers.stop());
    const service = await startService(context);
    closers.push(() => service.stop());
    const client = await service.connect("bench");
    closers.push(() => client.close());
    const [program] = await putPrograms(client, 1, 4);
    if (program === undefined) throw new Error("no program was put");
    const ids = await subscribe(service.url, receivers.urls);
    const random = createRandom(seed);
    const before = await receivers.figures();
    await produceEvents(client, random, program, 1);
    await receivers.received(before, 1);
    const body = await settled(service.url, ids);
    const posts = startPlainPosts(receivers.urls);
    closers.push(() => posts.close());

    const measure = async (send: () => Promise<unknown>): Promise<RoundSample> => {
      const before = await receivers.figures();
      const [count, ratePerSecond] = [EVENTS[size], EVENTS_PER_SECOND[size]];
      const { seconds } = await runOpenLoop({ count, ratePerSecond, latency: new LatencyHistogram(), send });
      const figures = await receivers.received(before, count);
      await settled(service.url, ids);
      return toSample(figures, seconds);
    };
    return {
      runners: {
        service: () => measure(() => produceEvents(client, random, program, 1)),
        "plain-loop": () => measure(() => posts.post(stampedNow(body), 1)),
      },
      notes: [`${WEBHOOKS[size]} webhooks with a receiver each, ${EVENTS[size]} events a round`],
      close,
    };
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
}

export const webhookLatency: Benchmark = {
  name: "webhook-latency",
  measures:
    `${EVENTS_PER_SECOND.full} events a second, each for ${WEBHOOKS.full} webhooks: from an event's timestamp, which is that of the record with the transition (milliseconds of the wall clock), to the ` +
    "last byte of its body at the receiver, of all receivers together: so the sync of the record, and the 199 others that are sent at the same time, are in it. The peer writes the time " +
    "into the same bytes and posts them to the same receivers at once.",
  metric: { name: "p99 latency event to receiver", unit: "ms", better: "lower" },
  contestants: [
    { name: "service", description: "the service as shipped, default settings, every webhook with a secret" },
    { name: "plain-loop", description: "undici, posting the same bytes" },
  ],
  peer: "plain-loop",
  goals: [],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 5 } },
  timeoutSeconds: { smoke: 90, full: 900 },
  open,
};
