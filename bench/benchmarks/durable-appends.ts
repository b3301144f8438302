import { randomBytes } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { generateUuidV7 } from "../../core/identifiers.js";
import { createRandom } from "../../core/random.js";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { Log } from "../../storage/log/log.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../harness/benchmark.js";
import { LatencyHistogram } from "../harness/latency-histogram.js";
import { eventMessages, sendEvents } from "../load/events/event-sender.js";
import { startService } from "../load/http/service-process.js";
import { putPrograms } from "../load/run-producer.js";
import { loadSqlite, missingWithoutSqlite } from "../peers/sqlite.js";
import { measureSqliteAppends } from "../peers/sqlite-appends.js";
import { replayWrites, traceWrites, type WriteGroup } from "../peers/write-trace.js";

const MESSAGE_BYTES = 1024;
const INDEX_BYTES = 96;
const BODY_BYTES = MESSAGE_BYTES - INDEX_BYTES;
const IN_FLIGHT = 64;
const MESSAGES = { smoke: 500, full: 20_000 };
const RECORDS = { smoke: 2_000, full: 150_000 };
const SQLITE_DOCUMENTS = { smoke: 500, full: 60_000 };
const GOAL = "1 KB records, 64 in flight, against better-sqlite3 in the faster of 1 and 64 to a transaction";
/** Any of the owner's types: the log does not look into them. */
const RECORD_TYPE = 16;

const SQLITE_CONTESTANTS = ["sqlite-documents", "sqlite-records"];

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
  const peer = loadSqlite();
  const sqliteRunners: OpenBenchmark["runners"] = {};
  if ("sqlite" in peer) {
    const { sqlite } = peer;
    const documents = SQLITE_DOCUMENTS[context.size];
    const messageOf = eventMessages(MESSAGE_BYTES, context.seed);
    const runId = generateUuidV7(Date.now(), randomBytes(10));
    const record = createRandom(context.seed).bytes(MESSAGE_BYTES);
    sqliteRunners["sqlite-documents"] = async () =>
      measureSqliteAppends(sqlite, fresh("sqlite"), documents, () => JSON.stringify(messageOf(runId)));
    sqliteRunners["sqlite-records"] = async () =>
      measureSqliteAppends(sqlite, fresh("sqlite"), documents, () => record);
  }
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
            sizeBytes: MESSAGE_BYTES,
            inFlight: IN_FLIGHT,
            seed: context.seed,
          });
          service.assertNothingRefused();
          return sample;
        },
        plain: replay(true),
        "plain-blocking": replay(false),
        ...sqliteRunners,
      },
      ...("why" in peer && { missing: missingWithoutSqlite(SQLITE_CONTESTANTS, peer.why) }),
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
    `1 KB made durable, ${IN_FLIGHT} in flight. log: encoded records, from append to durable (durability full), on the log alone: no link, no ` +
    "state machine; clock from the first append to the last record durable, opening and closing are outside. cell-link: messages " +
    `from send to ack, by one producer in the benchmark's process. Latency is that of one, in a closed loop of ${IN_FLIGHT}. Beside them better-sqlite3 ` +
    "(WAL, synchronous=FULL) in this process, by blocking calls, stores the same documents as JSON text (made within the clock), or " +
    "1 KB as it is, in the faster of 1 and 64 to a transaction. plain and plain-blocking write the bytes of the log's last " +
    "round again: the same sizes, in the same order, with fdatasync at the same places, to a fresh file on the same file system.",
  metric: { name: "durable records", unit: "records/s", better: "higher" },
  contestants: [
    { name: "log", description: "the service's log: two CRCs a record, group commit" },
    { name: "cell-link", description: "messages event.add of 1 KB to the service" },
    { name: "sqlite-documents", description: "better-sqlite3: the same messages as documents" },
    { name: "sqlite-records", description: "better-sqlite3: 1 KB of bytes, ready" },
    { name: "plain", description: "write and fdatasync by Node's thread pool, as the log calls them" },
    { name: "plain-blocking", description: "writeSync and fdatasyncSync: the disk and the kernel, nothing else" },
  ],
  peer: "plain",
  goals: [
    {
      kind: "ratio",
      contestant: "cell-link",
      peer: "sqlite-documents",
      ratio: 2,
      direction: "at-least",
      source: `${GOAL}: message to acknowledgement`,
    },
    {
      kind: "ratio",
      contestant: "log",
      peer: "sqlite-records",
      ratio: 3,
      direction: "at-least",
      source: `${GOAL}: the log alone`,
    },
  ],
  rounds: { smoke: { warmup: 0, measured: 2 }, full: { warmup: 2, measured: 15 } },
  timeoutSeconds: { smoke: 60, full: 600 },
  open,
};
