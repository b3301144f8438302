import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createRandom } from "../../core/random.js";
import { nodeFileSystem } from "../../storage/file-system.js";
import { Log } from "../../storage/log.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../harness/benchmark.js";
import { LatencyHistogram } from "../harness/latency-histogram.js";
import { sendEvents } from "../load/event-sender.js";
import { putPrograms } from "../load/run-producer.js";
import { startService } from "../load/service-process.js";
import { replayWrites, traceWrites, type WriteGroup } from "../peers/write-trace.js";

const INDEX_BYTES = 96;
const BODY_BYTES = 1024 - INDEX_BYTES;
const IN_FLIGHT = 64;
const MESSAGES = { smoke: 500, full: 20_000 };
const RECORDS = { smoke: 2_000, full: 150_000 };
/** Any of the owner's types: the log does not look into them. */
const RECORD_TYPE = 16;

interface LogRound {
  sample: RoundSample;
  groups: WriteGroup[];
}

/** Appends records to a fresh log, as many in flight as allowed, and times each until it is durable. */
async function appendRecords(directory: string, records: number, body: Uint8Array): Promise<LogRound> {
  const quarantineDirectory = join(directory, "quarantine");
  mkdirSync(quarantineDirectory, { recursive: true });
  const { fileSystem, groups } = traceWrites(nodeFileSystem);
  const empty = new Uint8Array(0);
  const log = await Log.open({
    fileSystem,
    directory,
    quarantineDirectory,
    durability: "full",
    understandsType: () => true,
    openingState: () => ({ index: empty, body: empty }),
    onRecords: () => {},
  });
  const index = body.subarray(0, INDEX_BYTES);
  const latency = new LatencyHistogram();
  groups.length = 0;
  let sent = 0;
  const startMs = performance.now();
  const slot = async (): Promise<void> => {
    while (sent < records) {
      sent++;
      const sentMs = performance.now();
      await log.whenCommitted(log.append({ type: RECORD_TYPE, timeUs: Date.now() * 1000, index, body }));
      latency.record((performance.now() - sentMs) * 1e6);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, slot));
  const seconds = (performance.now() - startMs) / 1000;
  const written = groups.splice(0);
  await log.close();
  rmSync(directory, { recursive: true });
  return {
    groups: written,
    sample: {
      value: records / seconds,
      seconds,
      latency: latency.toData(),
      details: { "records/fdatasync": records / written.length, "MB/s": sumBytes(written) / seconds / 1e6 },
    },
  };
}

function sumBytes(groups: readonly WriteGroup[]): number {
  return groups.flat().reduce((sum, size) => sum + size, 0);
}

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const records = RECORDS[context.size];
  const body = createRandom(context.seed).bytes(BODY_BYTES);
  let round = 0;
  const fresh = (name: string): string => join(context.directory, `${name}-${round++}`);
  // The peers replay what the log wrote last; the first round needs one to replay as well.
  let { groups } = await appendRecords(fresh("log"), records, body);
  const replay = (threads: boolean) => async (): Promise<RoundSample> => {
    const seconds = await replayWrites(fresh("plain"), groups, threads);
    return {
      value: records / seconds,
      seconds,
      details: { "records/fdatasync": records / groups.length, "MB/s": sumBytes(groups) / seconds / 1e6 },
    };
  };
  const service = await startService(context);
  try {
    const client = await service.connect("bench-events");
    const [program] = await putPrograms(client, 1, 1);
    if (program === undefined) throw new Error("no program was put");
    return {
      runners: {
        log: async () => {
          const result = await appendRecords(fresh("log"), records, body);
          groups = result.groups;
          return result.sample;
        },
        "cell-link": async () => {
          const sample = await sendEvents(client, program, service.pid, {
            count: MESSAGES[context.size],
            sizeBytes: 1024,
            inFlight: IN_FLIGHT,
            seed: context.seed,
          });
          service.assertNothingRefused();
          return sample;
        },
        plain: replay(true),
        "plain-blocking": replay(false),
      },
      notes: [],
      async close() {
        await client.close();
        await service.stop();
      },
    };
  } catch (error) {
    await service.stop().catch(() => {});
    throw error;
  }
}

export const durableAppends: Benchmark = {
  name: "durable-appends",
  measures:
    `Records of 1 KB, ${IN_FLIGHT} in flight, from append to durable (durability full), on the log alone: no link, no state machine. ` +
    "Clock from the first append to the last record durable; opening and closing are outside. Latency is append to durable, " +
    `in a closed loop of ${IN_FLIGHT}. The peers write the bytes of the log's last round again: the same sizes, in the same ` +
    "order, with fdatasync at the same places, to a fresh file on the same file system.",
  metric: { name: "durable records", unit: "records/s", better: "higher" },
  contestants: [
    { name: "log", description: "the service's log: encoding, two CRCs a record, group commit" },
    { name: "cell-link", description: "messages event.add of 1 KB to the service, from send to ack, by one producer" },
    { name: "plain", description: "write and fdatasync by Node's thread pool, as the log calls them" },
    { name: "plain-blocking", description: "writeSync and fdatasyncSync: the disk and the kernel, nothing else" },
  ],
  peer: "plain",
  goals: [],
  rounds: { smoke: { warmup: 0, measured: 2 }, full: { warmup: 2, measured: 15 } },
  timeoutSeconds: { smoke: 60, full: 600 },
  open,
};
