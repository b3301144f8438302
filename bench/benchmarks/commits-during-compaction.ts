import { cpSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { TEMPORARY_SUFFIX } from "../../storage/disk/file-system.js";
import { segmentBaseOf } from "../../storage/log/segment.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../harness/benchmark.js";
import { LatencyHistogram } from "../harness/latency-histogram.js";
import { machineCpuSeconds } from "../harness/machine-cpu.js";
import { runOpenLoop } from "../harness/open-loop.js";
import { eventMessages } from "../load/events/event-sender.js";
import { getBody } from "../load/http/http-load.js";
import { type ServiceProcess, serveStore } from "../load/http/service-process.js";
import { putPrograms, waitUntil } from "../load/run-producer.js";

const MESSAGE_BYTES = 1024;
const COMMITS_PER_SECOND = 500;
/** Of commits, between two looks at whether compaction is at it. */
const SLICE_COMMITS = 50;
/** So many slices are measured where nothing is compacted. */
const QUIET_SLICES = { smoke: 2, full: 40 };
/** Segments of 64 MiB that half of is needless: what messages said of runs that have ended, beside what their ends say. */
const SEGMENTS = { smoke: 0, full: 8 };
const FILL_BYTES = 4096;
const EVENTS_PER_RUN = 100;
const FILL_IN_FLIGHT = 64;
/** As long as less than that of the disk is free, nothing is compacted. */
const WITHOUT_COMPACTION = ["--disk-low-bytes", "99.999%"];

function logNames(store: string): string[] {
  return readdirSync(join(store, "meta"));
}

function segmentCount(store: string): number {
  return logNames(store).filter((name) => segmentBaseOf(name) !== undefined).length;
}

/** A segment is being written anew. */
function isRewriting(store: string): boolean {
  return logNames(store).some((name) => name.endsWith(`.seg${TEMPORARY_SUFFIX}`));
}

async function compactedSegments({ url }: ServiceProcess): Promise<number> {
  const text = (await getBody(`${url}/metrics`)).toString();
  return Number(/^inspection_compaction_segments_total (\d+)$/m.exec(text)?.[1]);
}

/** Runs that end, one after the other, until the log has so many segments that are complete. */
async function fill(context: BenchmarkContext, store: string): Promise<void> {
  const service = await serveStore(context, store, WITHOUT_COMPACTION);
  try {
    const client = await service.connect("bench-fill");
    const [program] = await putPrograms(client, 1, 1);
    if (program === undefined) throw new Error("no program was put");
    const messageOf = eventMessages(FILL_BYTES, context.seed);
    do {
      const id = client.nextRunId();
      await client.send({ type: "run.create", id, program_id: program.id });
      await client.send({ type: "run.start", id });
      const message = messageOf(id);
      let sent = 0;
      const slot = async (): Promise<void> => {
        while (sent++ < EVENTS_PER_RUN) await (await client.send(message)).acknowledged;
      };
      await Promise.all(Array.from({ length: FILL_IN_FLIGHT }, slot));
      await client.deliver({ type: "run.finish", id });
    } while (segmentCount(store) <= SEGMENTS[context.size]);
    await client.close();
    service.assertNothingRefused();
    if ((await compactedSegments(service)) > 0) throw new Error("segments were compacted while the store was filled");
  } finally {
    await service.stop();
  }
}

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const filled = join(context.directory, "filled");
  context.log("filling a store");
  await fill(context, filled);
  const store = join(context.directory, "store");

  /** Commits to a service that has just been started on the store, slice by slice, until `isDone`. */
  const commits = async (
    options: readonly string[],
    isDone: (service: ServiceProcess, slices: number) => Promise<boolean>,
  ): Promise<RoundSample> => {
    const service = await serveStore(context, store, options);
    try {
      const client = await service.connect("bench-events");
      const [program] = await putPrograms(client, 1, 1);
      if (program === undefined) throw new Error("no program was put");
      const runId = client.nextRunId();
      await client.send({ type: "run.create", id: runId, program_id: program.id });
      await client.deliver({ type: "run.start", id: runId });
      const message = eventMessages(MESSAGE_BYTES, context.seed)(runId);
      const latency = new LatencyHistogram();
      const before = machineCpuSeconds();
      let seconds = 0;
      for (let slices = 0; !(await isDone(service, slices)); slices++) {
        const send = async (): Promise<void> => (await client.send(message)).acknowledged;
        const loop = { ratePerSecond: COMMITS_PER_SECOND, count: SLICE_COMMITS, send, latency };
        seconds += (await runOpenLoop(loop)).seconds;
      }
      const after = machineCpuSeconds();
      await client.deliver({ type: "run.finish", id: runId });
      await client.close();
      service.assertNothingRefused();
      const p50Ms = latency.percentileNs(0.5) / 1e6;
      return {
        value: latency.percentileNs(0.99) / 1e6,
        seconds,
        stolenShare: (after.stolen - before.stolen) / (after.all - before.all || 1),
        latency: latency.toData(),
        details: { "p50 ms": p50Ms, "segments compacted": await compactedSegments(service) },
      };
    } finally {
      await service.stop();
    }
  };

  const freshStore = (): void => {
    rmSync(store, { recursive: true, force: true });
    cpSync(filled, store, { recursive: true });
  };
  const segments = segmentCount(filled) - 1;
  return {
    runners: {
      quiet: async () => {
        freshStore();
        return commits(WITHOUT_COMPACTION, async (_service, slices) => slices >= QUIET_SLICES[context.size]);
      },
      compacting: async () => {
        freshStore();
        return commits([], async (service, slices) => {
          if (segments === 0) return slices >= QUIET_SLICES[context.size];
          // Between two looks the link has its turn.
          if (slices === 0) await waitUntil("compaction", () => nextTurn().then(() => isRewriting(store)));
          return (await compactedSegments(service)) >= segments;
        });
      },
    },
    notes: [
      segments === 0
        ? "nothing is compacted at this size"
        : `${segments} segments are compacted, one after the other; commits are measured from the first one's writing until all are done`,
    ],
    async close() {},
  };
}

export const commitsDuringCompaction: Benchmark = {
  name: "commits-during-compaction",
  measures:
    `Messages event.add of 1 KB over the cell link, ${COMMITS_PER_SECOND} a second in an open loop, durability full, one producer: the clock of a message starts when it ` +
    `was meant to be sent and stops at its acknowledgement. A round's figure is the 99th percentile. Quiet, and while ${SEGMENTS.full} segments of 64 MiB, half of whose bytes are needless, are ` +
    "read, verified and written anew with their syncs. Each on a fresh copy of the same store, by a service that has just been started.",
  metric: { name: "p99 latency of commits", unit: "ms", better: "lower" },
  contestants: [
    { name: "quiet", description: "nothing is compacted" },
    { name: "compacting", description: "one segment after the other is compacted" },
  ],
  peer: "quiet",
  goals: [],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 7 } },
  timeoutSeconds: { smoke: 60, full: 900 },
  open,
};
