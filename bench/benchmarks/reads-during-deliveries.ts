import { setTimeout as sleep } from "node:timers/promises";
import { createRandom } from "../../core/random.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark } from "../harness/benchmark.js";
import {
  type DeliveryReceivers,
  type ReceiverFigures,
  startDeliveryReceivers,
} from "../load/events/delivery-receivers.js";
import { produceEvents, settled, subscribe } from "../load/events/webhook-events.js";
import { alternatingSlices, READS_PER_SECOND, type ReadSlices } from "../load/http/read-slices.js";
import { type ServiceProcess, startService } from "../load/http/service-process.js";
import { untilIdle } from "../load/process-cpu.js";
import { allCompleted, fillRuns, putPrograms } from "../load/run-producer.js";
import { startPlainPosts } from "../peers/plain-posts.js";

const RUNS = { smoke: 60, full: 2_000 };
const WEBHOOKS = { smoke: 5, full: 200 };
const SLICE_SECONDS = { smoke: 0.25, full: 0.75 };
const SLICES = { smoke: 2, full: 8 };
/** Far above what a cell does: a run every 0.2 s, told to everybody. */
const PACED_EVENTS_PER_SECOND = 5;
/** Of as many events the deliveries wait while one is sent after the other: every receiver's next one is always there. */
const SUSTAINED_BACKLOG_EVENTS = 4;
const LOOK_EVERY_MS = 10;
/** Sent at once when a slice begins: more deliveries than can be made within it. */
const FLAT_OUT_EVENTS = { smoke: 10, full: 60 };
const BURST_EVENTS = { smoke: 10, full: 1_000 };
/** As long as their deliveries take at least: 200,000 of them. */
const BURST_SECONDS = { smoke: 0.25, full: 8 };
/** Of the reads of a burst, those while its deliveries are made. */
const LEAST_BURST_PERCENT = 95;
const DETAILS = 64;
const LOADS = ["quiet", "paced", "sustained", "flat-out", "plain-loop"] as const;
const BURST_LOADS = ["quiet", "burst"] as const;
const PUT_OFF =
  "What the service puts off until its deliveries are made, a snapshot above all, is in none of it: the next slice begins when it rests.";
const SHARED_CORES =
  "Reader, producer, receivers and service share the machine's cores, all with the same priority: what they take from each other is in every figure.";
const GOAL = "p99 of reads beside deliveries at most 2 times the quiet one";

interface Scene {
  readonly receivers: DeliveryReceivers;
  readonly service: ServiceProcess;
  readonly webhookIds: readonly string[];
  /** What an event is posted as. */
  readonly body: string;
  /** Of finished runs, which readers ask for. */
  readonly detailIds: readonly string[];
  readonly note: string;
  produce(events: number): Promise<void>;
  close(): Promise<void>;
}

/** The service with runs to be read, and its webhooks' receivers. */
async function setScene(context: BenchmarkContext): Promise<Scene> {
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
    const random = createRandom(seed);
    const client = await service.connect("bench-fill");
    closers.push(() => client.close());
    const programs = await putPrograms(client, 4, 8);
    const [program] = programs;
    if (program === undefined) throw new Error("no program was put");
    const ids = await fillRuns(client, random, programs, RUNS[size], 8);
    await allCompleted(service.url, ids.length);
    const webhookIds = await subscribe(service.url, receivers.urls);
    const first = await receivers.figures();
    await produceEvents(client, random, program, 1);
    await receivers.received(first, 1);
    const body = await settled(service.url, webhookIds);
    await untilIdle(service.pid);
    return {
      receivers,
      service,
      webhookIds,
      body,
      detailIds: Array.from({ length: DETAILS }, () => random.pick(ids)),
      note: `${ids.length} runs in the store, ${WEBHOOKS[size]} webhooks, ${READS_PER_SECOND} reads a second`,
      produce: (events) => produceEvents(client, random, program, events),
      close,
    };
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
}

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const { size } = context;
  const { receivers, service, webhookIds, body, detailIds, note, produce, close } = await setScene(context);
  const posts = startPlainPosts(receivers.urls);
  const count = Math.round(SLICE_SECONDS[size] * READS_PER_SECOND);

  /** Sends events at a pace until it is told to stop; resolves with how many. */
  const pace = async (signal: AbortSignal): Promise<number> => {
    let sent = 0;
    for (; !signal.aborted; sent++) {
      await produce(1);
      await sleep(1000 / PACED_EVENTS_PER_SECOND, undefined, { signal }).catch(() => {});
    }
    return sent;
  };
  /** Sends an event as soon as what the ones before it come to is delivered but for a backlog; resolves with how many. */
  const sustain = async (before: ReceiverFigures, signal: AbortSignal): Promise<number> => {
    let sent = 0;
    while (!signal.aborted) {
      const { total } = await receivers.figures();
      const waiting = sent * WEBHOOKS[size] - (total - before.total);
      const missing = SUSTAINED_BACKLOG_EVENTS - Math.ceil(waiting / WEBHOOKS[size]);
      await produce(Math.max(0, missing));
      sent += Math.max(0, missing);
      await sleep(LOOK_EVERY_MS, undefined, { signal }).catch(() => {});
    }
    return sent;
  };
  const measureSlice = async (load: (typeof LOADS)[number], slices: ReadSlices): Promise<void> => {
    const before = await receivers.figures();
    const startMs = performance.timeOrigin + performance.now();
    const stop = new AbortController();
    const pacing =
      load === "paced" ? pace(stop.signal) : load === "sustained" ? sustain(before, stop.signal) : undefined;
    if (load === "flat-out") await produce(FLAT_OUT_EVENTS[size]);
    const posting = load === "plain-loop" ? posts.post(body, FLAT_OUT_EVENTS[size]) : undefined;
    await slices.read(service.url, detailIds, count);
    if (load === "quiet") return;
    stop.abort();
    const events = (await pacing) ?? FLAT_OUT_EVENTS[size];
    await posting;
    const { total, lastMs } = await receivers.received(before, events);
    slices.addLoad("deliveries 1/s", total, (lastMs - startMs) / 1000);
    await settled(service.url, webhookIds);
    service.assertNothingRefused();
    await untilIdle(service.pid);
  };
  return {
    runners: alternatingSlices(LOADS, SLICES[size], measureSlice),
    notes: [note],
    async close() {
      await posts.close();
      await close();
    },
  };
}

/** The goal in its own words: as many events at once, and reads from the first message until most of their deliveries are made. */
async function openBurst(context: BenchmarkContext): Promise<OpenBenchmark> {
  const { size } = context;
  const { receivers, service, webhookIds, detailIds, note, produce, close } = await setScene(context);
  const count = Math.round(BURST_SECONDS[size] * READS_PER_SECOND);
  const measureSlice = async (load: (typeof BURST_LOADS)[number], slices: ReadSlices): Promise<void> => {
    if (load === "quiet") return slices.read(service.url, detailIds, count);
    const before = await receivers.figures();
    const startMs = performance.timeOrigin + performance.now();
    await Promise.all([produce(BURST_EVENTS[size]), slices.read(service.url, detailIds, count)]);
    const readSeconds = (performance.timeOrigin + performance.now() - startMs) / 1000;
    const { total, lastMs } = await receivers.received(before, BURST_EVENTS[size]);
    const seconds = (lastMs - startMs) / 1000;
    slices.addLoad("deliveries 1/s", total, seconds);
    const leastPercent = size === "full" ? LEAST_BURST_PERCENT : 0;
    slices.addShare("reads beside deliveries %", Math.min(seconds, readSeconds), readSeconds, leastPercent);
    await settled(service.url, webhookIds);
    service.assertNothingRefused();
    await untilIdle(service.pid);
  };
  return { runners: alternatingSlices(BURST_LOADS, 1, measureSlice), notes: [note], close };
}

export const readsDuringDeliveries: Benchmark = {
  name: "reads-during-deliveries",
  measures:
    `GET /runs?limit=50 and GET /runs/{run_id} (${DETAILS} different finished runs) in turn, ${READS_PER_SECOND} a second in an open loop: the clock of a read starts ` +
    "when it was meant to be sent and stops at the last byte of its answer. A round's figure is the 99th percentile of both together, of " +
    `${SLICES.full} slices of ${SLICE_SECONDS.full} s that alternate with those of the others. Alone; beside ${PACED_EVENTS_PER_SECOND} events a second that ${WEBHOOKS.full} webhooks subscribe to; ` +
    `beside as many events as are delivered, one sent after the other so that the deliveries of ${SUSTAINED_BACKLOG_EVENTS} always wait; ` +
    `beside ${FLAT_OUT_EVENTS.full} such events sent at once when a slice begins; and, to show what of that is the machine's, beside a thread of the benchmark's process whose ` +
    `loop posts as many of the same bytes to the same receivers with undici's request, of which the service knows nothing. ${PUT_OFF} ${SHARED_CORES}`,
  metric: { name: "p99 latency of reads", unit: "ms", better: "lower" },
  contestants: [
    { name: "quiet", description: "no deliveries" },
    { name: "paced", description: `${PACED_EVENTS_PER_SECOND} events to ${WEBHOOKS.full} webhooks a second` },
    { name: "sustained", description: "as many deliveries as the dispatcher makes" },
    { name: "flat-out", description: "the same, of events that come all at once" },
    { name: "plain-loop", description: "as many posts by somebody else" },
  ],
  peer: "quiet",
  goals: [
    { kind: "ratio", contestant: "paced", peer: "quiet", ratio: 2, direction: "at-most", source: GOAL },
    { kind: "ratio", contestant: "sustained", peer: "quiet", ratio: 2, direction: "at-most", source: GOAL },
    { kind: "ratio", contestant: "flat-out", peer: "quiet", ratio: 2, direction: "at-most", source: GOAL },
  ],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 5 } },
  timeoutSeconds: { smoke: 90, full: 600 },
  open,
};

export const readsDuringBurst: Benchmark = {
  name: "reads-during-burst",
  measures:
    `GET /runs?limit=50 and GET /runs/{run_id} as in reads-during-deliveries, for ${BURST_SECONDS.full} s: alone, and from the moment when ${BURST_EVENTS.full} runs that end completed are sent at once, ` +
    `each an event for ${WEBHOOKS.full} webhooks. The first second or two of these are the runs' own: their records, the events and what they begin are in it. A round's figure is the 99th ` +
    `percentile of both kinds of reads together. ${PUT_OFF} ${SHARED_CORES}`,
  metric: { name: "p99 latency of reads", unit: "ms", better: "lower" },
  contestants: [
    { name: "quiet", description: "no deliveries" },
    { name: "burst", description: `${BURST_EVENTS.full} events at once` },
  ],
  peer: "quiet",
  goals: [{ kind: "ratio", contestant: "burst", peer: "quiet", ratio: 2, direction: "at-most", source: GOAL }],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 7 } },
  timeoutSeconds: { smoke: 90, full: 900 },
  open: openBurst,
};
