import { createRandom } from "../../core/random.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../harness/benchmark.js";
import { startDeliveryReceivers } from "../load/events/delivery-receivers.js";
import { produceEvents, settled, stampedNow, subscribe } from "../load/events/webhook-events.js";
import { startService } from "../load/http/service-process.js";
import { cpuSecondsOf, untilIdle } from "../load/process-cpu.js";
import { putPrograms } from "../load/run-producer.js";
import { startPlainPosts } from "../peers/plain-posts.js";

const WEBHOOKS = { smoke: 5, full: 200 };
/** Of one round. */
const EVENTS = { smoke: 4, full: 1_000 };

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const [webhooks, events] = [WEBHOOKS[context.size], EVENTS[context.size]];
  const closers: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).reverse()) await closer();
  };
  try {
    const receivers = await startDeliveryReceivers(context, webhooks);
    closers.push(() => receivers.stop());
    const service = await startService(context);
    closers.push(() => service.stop());
    const client = await service.connect("bench");
    closers.push(() => client.close());
    const [program] = await putPrograms(client, 1, 4);
    if (program === undefined) throw new Error("no program was put");
    const ids = await subscribe(service.url, receivers.urls);
    const random = createRandom(context.seed);
    // One event more shows the bytes that the peer posts as well.
    const before = await receivers.figures();
    await produceEvents(client, random, program, 1);
    await receivers.received(before, 1);
    const body = await settled(service.url, ids);
    const posts = startPlainPosts(receivers.urls);
    closers.push(() => posts.close());

    const sample = (seconds: number, cpuSeconds: number, details: Record<string, number>): RoundSample => ({
      value: (webhooks * events) / seconds,
      seconds,
      details: { "CPU us/delivery": (cpuSeconds * 1e6) / (webhooks * events), ...details },
    });
    return {
      runners: {
        service: async () => {
          const before = await receivers.figures();
          const cpuBefore = cpuSecondsOf(service.pid);
          const startMs = performance.timeOrigin + performance.now();
          await produceEvents(client, random, program, events);
          const { lastMs, latency } = await receivers.received(before, events);
          const arrivedMs = performance.timeOrigin + performance.now();
          await settled(service.url, ids);
          const recordedMs = performance.timeOrigin + performance.now() - arrivedMs;
          service.assertNothingRefused();
          await untilIdle(service.pid);
          const cpuSeconds = cpuSecondsOf(service.pid) - cpuBefore;
          const seconds = (lastMs - startMs) / 1000;
          return { ...sample(seconds, cpuSeconds, { "all recorded after, ms": recordedMs }), latency };
        },
        "plain-loop": async () => {
          const before = await receivers.figures();
          const cpuBefore = process.cpuUsage();
          const seconds = await posts.post(stampedNow(body), events);
          const cpu = process.cpuUsage(cpuBefore);
          const { latency } = await receivers.received(before, events);
          return { ...sample(seconds, (cpu.user + cpu.system) / 1e6, {}), latency };
        },
      },
      notes: [
        `${webhooks} webhooks, each with a receiver (a port) of its own, all in one process; ${events} events a round, ${Buffer.byteLength(body)} bytes each, signed`,
      ],
      close,
    };
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
}

export const webhookDeliveries: Benchmark = {
  name: "webhook-deliveries",
  measures:
    `${WEBHOOKS.full} webhooks subscribe to ProgramCompleted; ${EVENTS.full} runs of 4 steps and 4 checks are sent at once over the cell link. The clock starts before ` +
    "the first message and stops when the last receiver has the last event: the runs' records, the outbox, signatures and attempts are in it, and the outcomes that are " +
    "recorded durably meanwhile; how long the rest of them takes is told. CPU time is told of all that the service does until it rests, what it puts off until nothing waits with it. Latency runs from an event's own timestamp to the last byte at the receiver, and so holds the wait behind the events before it. The peer " +
    "is a thread whose loop posts the same bytes to the same receivers with undici's request, one at a time to each, and does nothing else; its latency runs from when it is told to.",
  metric: { name: "deliveries", unit: "1/s", better: "higher" },
  contestants: [
    { name: "service", description: "the service as shipped, default settings, every webhook with a secret" },
    { name: "plain-loop", description: "undici, posting the same bytes" },
  ],
  peer: "plain-loop",
  goals: [
    {
      contestant: "service",
      direction: "at-least",
      kind: "ratio",
      peer: "plain-loop",
      ratio: 0.6,
      source: "webhooks beside a plain undici loop",
    },
  ],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 5 } },
  timeoutSeconds: { smoke: 90, full: 600 },
  open,
};
