import { join } from "node:path";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../../harness/benchmark.js";
import { atMost } from "../../harness/goal.js";
import { LatencyHistogram } from "../../harness/latency-histogram.js";
import { p99Sample } from "../../harness/latency-sample.js";
import { runOpenLoop } from "../../harness/open-loop.js";
import {
  alternatingSlices,
  READS,
  READS_PER_SECOND,
  type ReadSlices,
  readsBeside,
} from "../../load/http/read-slices.js";
import { startService } from "../../load/http/service-process.js";
import { missingWithoutNats, startNatsServer } from "../../load/plant/plant-store.js";
import { slowLink } from "../../load/plant/slow-link.js";
import { beginChanges, fillService, paced } from "../../load/run-producer.js";

const RUNS = { smoke: 5, full: 1_000 };
const SLICE_SECONDS = { smoke: 0.1, full: 0.75 };
const SLICES = { smoke: 1, full: 8 };
const MESSAGES = { smoke: 20, full: 1_000 };
/** A busy cell has some ten messages a second. */
const MESSAGES_PER_SECOND = 100;
/** Nobody listens on this port. */
const AWAY = "nats://127.0.0.1:9";
const PLANTS = ["without", "connected", "slow", "away"] as const;
const GOAL = { target: 1.2, source: "plant.md: the cell does not feel it, at most 1.2 times without" };
const CONTESTANTS = [
  { name: "without", description: "no --plant" },
  { name: "connected", description: "a NATS server on this machine" },
  { name: "slow", description: "each chunk to it is held back for 200 ms" },
  { name: "away", description: "nobody answers at the address" },
];

/** Four services with the same content, each with another plant; one of them works at a time. */
async function startCells(context: BenchmarkContext) {
  const server = await startNatsServer(context, join(context.directory, "nats"));
  const urls = { without: null, connected: server.url, slow: await slowLink(context, server.url), away: AWAY };
  const start = async (name: (typeof PLANTS)[number]) => {
    const settings = urls[name] === null ? [] : ["--plant", urls[name], "--cell", name];
    const service = await startService(context, join(context.directory, name), { name, settings });
    const { client, program, ids } = await fillService(service, context.seed, { steps: 4, count: RUNS[context.size] });
    return [name, { service, ids, send: await beginChanges(client, program) }] as const;
  };
  const cells = [];
  for (const name of PLANTS) cells.push(await start(name));
  return Object.fromEntries(cells) as Record<(typeof PLANTS)[number], (typeof cells)[number][1]>;
}

async function openReads(context: BenchmarkContext): Promise<OpenBenchmark> {
  const { size } = context;
  const cells = await startCells(context);
  const measureSlice = async (name: (typeof PLANTS)[number], slices: ReadSlices): Promise<void> => {
    const { service, ids, send } = cells[name];
    const stop = new AbortController();
    const pacing = paced(MESSAGES_PER_SECOND, stop.signal, send);
    await slices.read(service.url, ids, Math.round(SLICE_SECONDS[size] * READS_PER_SECOND));
    stop.abort();
    await pacing;
    service.assertNothingRefused();
  };
  return {
    runners: alternatingSlices(PLANTS, SLICES[size], measureSlice),
    notes: [`${RUNS[size]} runs in each store`],
  };
}

async function openAcknowledgements(context: BenchmarkContext): Promise<OpenBenchmark> {
  const cells = await startCells(context);
  const measure = async (name: (typeof PLANTS)[number]): Promise<RoundSample> => {
    const { service, send } = cells[name];
    const latency = new LatencyHistogram();
    const count = MESSAGES[context.size];
    const startMs = performance.now();
    await runOpenLoop({ ratePerSecond: MESSAGES_PER_SECOND, count, send, latency });
    service.assertNothingRefused();
    return p99Sample(latency, startMs);
  };
  return {
    runners: Object.fromEntries(PLANTS.map((name) => [name, () => measure(name)])),
    notes: [`${RUNS[context.size]} runs in each store`],
  };
}

export const readsDuringShipping: Benchmark = readsBeside({
  name: "reads-during-shipping",
  measures:
    `${READS} Each contestant is a service of its own with the same content, in which ${MESSAGES_PER_SECOND} messages a second become durable meanwhile: without a plant, ` +
    `and with one that is connected, slow, or away. A slice takes ${SLICE_SECONDS.full} s, and a round has ${SLICES.full} of each.`,
  contestants: CONTESTANTS,
  goal: GOAL,
  timeoutSeconds: 900,
  open: missingWithoutNats(PLANTS, openReads),
});

export const acknowledgementsDuringShipping: Benchmark = {
  name: "acknowledgements-during-shipping",
  measures:
    `Messages event.add over the cell link, ${MESSAGES_PER_SECOND} a second in an open loop, durability full: from the instant at which one was meant to be sent to its ` +
    `acknowledgement; the 99th percentile of ${MESSAGES.full}. Each contestant is a service of its own: without a plant, and with one that is connected, slow, or away.`,
  metric: { name: "p99 latency of acknowledgements", unit: "ms", better: "lower" },
  contestants: CONTESTANTS,
  peer: null,
  goals: PLANTS.slice(1).map((contestant) => atMost(contestant, GOAL.target, GOAL.source, "without")),
  rounds: { warmup: 1, measured: 7 },
  timeoutSeconds: 900,
  open: missingWithoutNats(PLANTS, openAcknowledgements),
};
