import type { Benchmark } from "../harness/benchmark.js";
import { captureIngest } from "./capture-ingest.js";
import { capturePaced } from "./capture-paced.js";
import { commitsDuringCompaction } from "./commits-during-compaction.js";
import { download20mb } from "./download-20mb.js";
import { durableAppends } from "./durable-appends.js";
import { fastifyListPage, fastifyRunDetail } from "./fastify-peer.js";
import { frameFormats, readsDuringProcessing } from "./frame-formats.js";
import { framingGuard } from "./framing-guard.js";
import { heightMapPngs } from "./height-map-png.js";
import { list1m } from "./list-1m.js";
import { listDepth1m } from "./list-depth-1m.js";
import { listHttp1m } from "./list-http-1m.js";
import { listPageHot } from "./list-page-hot.js";
import { listPages10k } from "./list-pages-10k.js";
import { listSqlite1m } from "./list-sqlite-1m.js";
import { memory1m } from "./memory-1m.js";
import { npyDownload } from "./npy-download.js";
import { open1m } from "./open-1m.js";
import { outlierFilters } from "./outlier-filter.js";
import { outlierFilterThreads } from "./outlier-filter-threads.js";
import { plyBuilds } from "./ply-build.js";
import { poolTask } from "./pool-task.js";
import { readsDuringBurst, readsDuringDeliveries } from "./reads-during-deliveries.js";
import { readsDuringIngest } from "./reads-during-ingest.js";
import { runDetailHot } from "./run-detail-hot.js";
import { seriesCsv } from "./series-csv.js";
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
