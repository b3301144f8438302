import { captureIngest } from "./benchmarks/capture-ingest.js";
import { download20mb, npyDownload } from "./benchmarks/downloads.js";
import { durableAppends } from "./benchmarks/durable-appends.js";
import { heightMapPngs } from "./benchmarks/height-map-png.js";
import { hotReads } from "./benchmarks/hot-reads.js";
import { list1m, listPlant } from "./benchmarks/list-1m.js";
import { changesToClients, changesToHub } from "./benchmarks/live/changes-to-clients.js";
import { readsDuringStreams } from "./benchmarks/live/reads-during-streams.js";
import { memory1m } from "./benchmarks/memory-1m.js";
import { open1m } from "./benchmarks/open-1m.js";
import { outlierFilters } from "./benchmarks/outlier-filter.js";
import { hubIngest } from "./benchmarks/plant/hub-ingest.js";
import { pagesOfCells } from "./benchmarks/plant/pages-of-cells.js";
import { acknowledgementsDuringShipping, readsDuringShipping } from "./benchmarks/plant/while-shipping.js";
import { plyBuilds } from "./benchmarks/ply-build.js";
import { readsDuringDeliveries } from "./benchmarks/reads-during-deliveries.js";
import { readsDuringIngest } from "./benchmarks/reads-during-ingest.js";
import { readsDuringProcessing } from "./benchmarks/reads-during-processing.js";
import { seriesCsv } from "./benchmarks/series-csv.js";
import { programStatistics } from "./benchmarks/statistics/program-statistics.js";
import { readsDuringStatistics } from "./benchmarks/statistics/reads-during-statistics.js";
import { webhookDeliveries } from "./benchmarks/webhook-deliveries.js";
import type { Benchmark } from "./harness/benchmark.js";

/** Every benchmark, in the order in which they run. */
export const BENCHMARKS: readonly Benchmark[] = [
  durableAppends,
  captureIngest,
  readsDuringIngest,
  webhookDeliveries,
  readsDuringDeliveries,
  readsDuringProcessing,
  changesToClients,
  readsDuringStreams,
  ...hotReads,
  list1m,
  open1m,
  memory1m,
  download20mb,
  npyDownload,
  ...outlierFilters,
  ...plyBuilds,
  ...heightMapPngs,
  seriesCsv,
  programStatistics,
  readsDuringStatistics,
  listPlant,
  hubIngest,
  changesToHub,
  pagesOfCells,
  readsDuringShipping,
  acknowledgementsDuringShipping,
];

export function findBenchmark(name: string): Benchmark {
  const found = BENCHMARKS.find((benchmark) => benchmark.name === name);
  if (found === undefined) {
    throw new Error(`no benchmark is called ${name}; there are: ${BENCHMARKS.map((b) => b.name).join(", ")}`);
  }
  return found;
}
