import type { Benchmark } from "../harness/benchmark.js";
import { captureIngest } from "./captures/capture-ingest.js";
import { capturePaced } from "./captures/capture-paced.js";
import { download20mb } from "./captures/download-20mb.js";
import { frameFormats, readsDuringProcessing } from "./captures/frame-formats.js";
import { heightMapPngs } from "./captures/height-map-png.js";
import { npyDownload } from "./captures/npy-download.js";
import { outlierFilters } from "./captures/outlier-filter.js";
import { outlierFilterThreads } from "./captures/outlier-filter-threads.js";
import { plyBuilds } from "./captures/ply-build.js";
import { poolTask } from "./captures/pool-task.js";
import { seriesCsv } from "./captures/series-csv.js";
import { commitsDuringCompaction } from "./commits-during-compaction.js";
import { durableAppends } from "./durable-appends.js";
import { fastifyListPage, fastifyRunDetail } from "./fastify-peer.js";
import { framingGuard } from "./framing-guard.js";
import { list1m } from "./lists/list-1m.js";
import { listDepth1m } from "./lists/list-depth-1m.js";
import { listHttp1m } from "./lists/list-http-1m.js";
import { listPageHot } from "./lists/list-page-hot.js";
import { listPages10k } from "./lists/list-pages-10k.js";
import { listSqlite1m } from "./lists/list-sqlite-1m.js";
import { memory1m } from "./lists/memory-1m.js";
import { open1m } from "./lists/open-1m.js";
import { readsDuringBurst, readsDuringDeliveries } from "./reads-during-deliveries.js";
import { readsDuringIngest } from "./reads-during-ingest.js";
import { runDetailHot } from "./run-detail-hot.js";
import { webhookDeliveries } from "./webhook-deliveries.js";
import { webhookLatency } from "./webhook-latency.js";

/** Every benchmark, in the order in which they run. */
export const BENCHMARKS: readonly Benchmark[] = [
  durableAppends,
  captureIngest,
  capturePaced,
  commitsDuringCompaction,
  readsDuringIngest,
  webhookDeliveries,
  webhookLatency,
  readsDuringDeliveries,
  readsDuringBurst,
  runDetailHot,
  listPageHot,
  framingGuard,
  fastifyRunDetail,
  fastifyListPage,
  listPages10k,
  download20mb,
  list1m,
  listDepth1m,
  listSqlite1m,
  listHttp1m,
  open1m,
  memory1m,
  ...outlierFilters,
  ...outlierFilterThreads,
  ...plyBuilds,
  ...heightMapPngs,
  seriesCsv,
  poolTask,
  npyDownload,
  frameFormats,
  readsDuringProcessing,
];

export function findBenchmark(name: string): Benchmark {
  const found = BENCHMARKS.find((benchmark) => benchmark.name === name);
  if (found === undefined) {
    throw new Error(`no benchmark is called ${name}; there are: ${BENCHMARKS.map((b) => b.name).join(", ")}`);
  }
  return found;
}
