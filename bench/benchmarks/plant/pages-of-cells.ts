import { generateUuidV7, uuidToBytes, writeUuid } from "../../../core/identifiers.js";
import { createRandom, type Random } from "../../../core/random.js";
import { foldRun } from "../../../core/run/run-fold.js";
import { encodeChanges } from "../../../storage/records/change-record.js";
import { IndexReader } from "../../../storage/records/index-reader.js";
import { PlantRuns } from "../../../storage/view/plant/plant-runs.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../../harness/benchmark.js";
import { LatencyHistogram } from "../../harness/latency-histogram.js";
import { createdAtUs, creationOf, programsOf } from "../../load/run-store.js";

const RUNS = { smoke: 2_000, full: 400_000 };
const PAGES = { smoke: 20, full: 2_000 };
const CELLS = [1, 10, 100, 1_000];
const PAGE = 50;
const LOCATION = { segmentBase: 1, offset: 64, length: 1_000 };

/** The tables of so many cells, which have these runs in turn. */
function tablesOf(cells: number, runs: number, random: Random, seed: number): PlantRuns {
  const { programs } = programsOf(seed);
  const created = creationOf(generateUuidV7(0, random.bytes(10)), programs[0]!, "SN-1", random);
  const run = foldRun(undefined, created, createdAtUs(0));
  const { index } = encodeChanges(null, [{ kind: "run_ended", runId: created.runId, run }], undefined);
  const reader = new IndexReader(index);
  reader.origin();
  const indexed = reader.run().copy();
  const programIds = programs.map(({ id }) => uuidToBytes(id));
  const tables = new PlantRuns();
  let id: string | null = null;
  for (let nth = 0; nth < runs; nth++) {
    const timeUs = createdAtUs(nth);
    id = generateUuidV7(timeUs / 1000, random.bytes(10), id);
    writeUuid(id, indexed.bytes, indexed.idAt);
    indexed.bytes.set(random.pick(programIds), indexed.programIdAt);
    const cell = nth % cells;
    tables.select(`cell-${cell}`, `store-${cell}`);
    tables.end(indexed, timeUs, LOCATION);
  }
  return tables;
}

async function open({ size, seed }: BenchmarkContext): Promise<OpenBenchmark> {
  const random = createRandom(seed);
  const runs = RUNS[size];
  const measure = (tables: PlantRuns): RoundSample => {
    const latency = new LatencyHistogram();
    const startMs = performance.now();
    for (let page = 0; page < PAGES[size]; page++) {
      const offset = random.integer(0, runs - 1);
      const sentMs = performance.now();
      const { total } = tables.query({ offset, limit: PAGE });
      latency.record((performance.now() - sentMs) * 1e6);
      if (total !== runs) throw new Error(`a total of ${total} instead of ${runs}`);
    }
    const seconds = (performance.now() - startMs) / 1000;
    const p99Us = latency.percentileNs(0.99) / 1e3;
    return { value: latency.percentileNs(0.5) / 1e3, seconds, latency: latency.toData(), details: { "p99 us": p99Us } };
  };
  const runners = CELLS.map((cells) => {
    const tables = tablesOf(cells, runs, random, seed);
    return [`cells-${cells}`, async () => measure(tables)] as const;
  });
  return { runners: Object.fromEntries(runners), notes: [`${runs} runs`] };
}

export const pagesOfCells: Benchmark = {
  name: "pages-of-cells",
  measures:
    `What more cells cost a page: a hub's index finds ${PAGE} runs at a uniformly random offset, with the exact total, among ${RUNS.full} runs that 1, 10, 100 or 1,000 ` +
    `cells have made in turn. One thread, without HTTP and JSON. A round's figure is the median of ${PAGES.full} pages.`,
  metric: { name: "time of a page", unit: "us", better: "lower" },
  contestants: CELLS.map((cells) => ({ name: `cells-${cells}`, description: `${cells} cells` })),
  peer: null,
  goals: [[10, 100, 2] as const, [100, 1_000, 1.5] as const].map(([few, many, target]) => ({
    contestant: `cells-${many}`,
    peer: `cells-${few}`,
    direction: "at-most",
    target,
    source: "plant.md: at most log(cells) time a page",
  })),
  rounds: { warmup: 1, measured: 7 },
  timeoutSeconds: 300,
  open,
};
