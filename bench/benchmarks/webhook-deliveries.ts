import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../harness/benchmark.js";
import { atLeast } from "../harness/goal.js";
import { openWebhookScene } from "../load/events/webhook-events.js";
import { cpuSecondsOf } from "../load/process-cpu.js";
import { postPlainly } from "../peers/plain-posts.js";

/** Events of one round. */
const EVENTS = { smoke: 2, full: 1_000 };

function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

/** A payload with the present time, so that a receiver can tell how late it came. */
function stampedNow(payload: string): string {
  const now = new Date().toISOString().replace("Z", "000Z");
  return payload.replace(/"timestamp":"[^"]+"/, `"timestamp":"${now}"`);
}

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const events = EVENTS[context.size];
  const { service, receivers, webhooks, body, produce, settled } = await openWebhookScene(context, 0);

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
        const startMs = nowMs();
        await produce(events);
        const { lastMs, latency } = await receivers.received(before, events);
        await settled();
        const settledMs = nowMs() - lastMs;
        const cpuSeconds = cpuSecondsOf(service.pid) - cpuBefore;
        return { ...sample((lastMs - startMs) / 1000, cpuSeconds, { "at rest after, ms": settledMs }), latency };
      },
      "plain-loop": async () => {
        const before = await receivers.figures();
        const cpuBefore = process.cpuUsage();
        const seconds = await postPlainly(receivers.urls, stampedNow(body), events);
        const cpu = process.cpuUsage(cpuBefore);
        const { latency } = await receivers.received(before, events);
        return { ...sample(seconds, (cpu.user + cpu.system) / 1e6, {}), latency };
      },
    },
    notes: [
      `${webhooks} webhooks, each with a receiver (a port) of its own, all in one process; ${events} events a round, ${Buffer.byteLength(body)} bytes each, signed`,
    ],
  };
}

export const webhookDeliveries: Benchmark = {
  name: "webhook-deliveries",
  measures:
    `200 webhooks subscribe to ProgramCompleted. ${EVENTS.full} runs of 4 steps and 4 checks are sent at once over the cell link. The clock starts before the ` +
    "first message, and stops when the last receiver has the last event. So it measures the runs' records, the queue, signatures, attempts, and the durable records " +
    "of outcomes until then. CPU time is all that the service takes until it rests. Latency is from an event's own timestamp to the last byte at the receiver. " +
    "So it includes the wait behind earlier events. The peer is a process that posts the same bytes to the same receivers with undici's request, one at a time to " +
    "each, and does nothing else. Its latency begins when it is told to post.",
  metric: { name: "deliveries", unit: "1/s", better: "higher" },
  contestants: [
    { name: "service", description: "the service as shipped, default settings, every webhook with a secret" },
    { name: "plain-loop", description: "undici, posting the same bytes" },
  ],
  peer: "plain-loop",
  goals: [atLeast("service", 0.6, "webhooks beside a plain undici loop", "plain-loop")],
  rounds: { warmup: 1, measured: 7 },
  timeoutSeconds: 900,
  open,
};
