import { generateUuidV7, uuidToBytes, writeUuid } from "../../../core/identifiers.js";
import { createRandom, type Random } from "../../../core/random.js";
import { NO_REPORT, REPORT_STATUSES } from "../../../core/run/quality.js";
import { foldRun } from "../../../core/run/run-fold.js";
import { RUN_STATUSES } from "../../../core/run/run-state.js";
import { encodeChanges } from "../../../storage/records/change-record.js";
import { QUALITY_CODES } from "../../../storage/records/index-layout.js";
import { IndexReader } from "../../../storage/records/index-reader.js";
import { PlantRuns } from "../../../storage/view/plant/plant-runs.js";
import type { RunListQuery } from "../../../storage/view/view-runs.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../../harness/benchmark.js";
import { atMost } from "../../harness/goal.js";
import { LatencyHistogram } from "../../harness/latency-histogram.js";
import { createdAtUs, creationOf, programsOf, serialNumberText } from "../../load/run-store.js";

const RUNS = { smoke: 2_000, full: 400_000 };
const PAGES = { smoke: 20, full: 2_000 };
const CELLS = [1, 10, 100, 1_000];
const PAGE = 50;
const RUNS_PER_SERIAL = 5;
const LOCATION = { segmentBase: 1, offset: 64, length: 1_000 };

type Query = Omit<RunListQuery, "offset" | "limit">;

/** By contestant: a random filter of its kind. Runs are completed or failed, and have each outcome. */
const FILTERS: Record<string, (random: Random, runs: number, programIds: readonly string[]) => Query> = {
  cells: () => ({}),
  program: (random, _runs, programIds) => ({ programId: random.pick(programIds) }),
  status: (random) => ({ status: random.pick(["completed", "failed"]) }),
  outcome: (random) => ({ qualityStatus: random.pick([NO_REPORT, ...REPORT_STATUSES]) }),
  updated: (random, runs) => ({ updatedSinceUs: createdAtUs(random.integer(0, runs - 2)) }),
  serial: (random, runs) => ({ serialNumber: serialNumberText(random.integer(1, runs / RUNS_PER_SERIAL)) }),
};
/** A serial number is looked up in the table of each cell. */
const SERIAL_US = { 100: 1_000, 1000: 5_000 } as const;

/** The tables of so many cells, which have these runs in turn. */
function tablesOf(cells: number, runs: number, random: Random, seed: number): PlantRuns {
  const { programs } = programsOf(seed);
  const created = creationOf(generateUuidV7(0, random.bytes(10)), programs[0]!, serialNumberText(1), random);
  const run = foldRun(undefined, created, createdAtUs(0));
  const { index } = encodeChanges(null, [{ kind: "run_ended", runId: created.runId, run }], undefined);
  const reader = new IndexReader(index);
  reader.origin();
  const indexed = reader.run().copy();
  const programIds = programs.map(({ id }) => uuidToBytes(id));
  const tables = new PlantRuns();
  const encoder = new TextEncoder();
  let id: string | null = null;
  for (let nth = 0; nth < runs; nth++) {
    const timeUs = createdAtUs(nth);
    id = generateUuidV7(timeUs / 1000, random.bytes(10), id);
    writeUuid(id, indexed.bytes, indexed.idAt);
    indexed.bytes.set(random.pick(programIds), indexed.programIdAt);
    const serialNumber = serialNumberText(random.integer(1, runs / RUNS_PER_SERIAL));
    encoder.encodeInto(serialNumber, indexed.bytes.subarray(indexed.serialNumberAt));
    const status = RUN_STATUSES.indexOf(random.chance(0.1) ? "failed" : "completed");
    indexed.bytes[indexed.idAt + 32] = status | (random.integer(0, QUALITY_CODES.length - 1) << 4);
    const cell = nth % cells;
    tables.select(`cell-${cell}`, `store-${cell}`);
    tables.end(indexed, timeUs, LOCATION);
  }
  return tables;
}

async function open({ size, seed }: BenchmarkContext): Promise<OpenBenchmark> {
  const random = createRandom(seed);
  const runs = RUNS[size];
  const programIds = programsOf(seed).programs.map(({ id }) => id);
  const measure = (tables: PlantRuns, filterOf: (typeof FILTERS)[string]): RoundSample => {
    const latency = new LatencyHistogram();
    const startMs = performance.now();
    for (let page = 0; page < PAGES[size]; page++) {
      const filter = filterOf(random, runs, programIds);
      const { total } = tables.query({ ...filter, offset: 0, limit: 0 });
      const offset = random.integer(0, Math.max(0, total - 1));
      const sentMs = performance.now();
      const found = tables.query({ ...filter, offset, limit: PAGE });
      latency.record((performance.now() - sentMs) * 1e6);
      if (found.ordinals.length !== Math.min(PAGE, total - offset)) throw new Error(`no page at ${offset} of ${total}`);
    }
    const seconds = (performance.now() - startMs) / 1000;
    const p99Us = latency.percentileNs(0.99) / 1e3;
    return { value: latency.percentileNs(0.5) / 1e3, seconds, latency: latency.toData(), details: { "p99 us": p99Us } };
  };
  const runners = CELLS.flatMap((cells) => {
    const tables = tablesOf(cells, runs, random, seed);
    return Object.entries(FILTERS).map(
      ([name, filterOf]) => [`${name}-${cells}`, async () => measure(tables, filterOf)] as const,
    );
  });
  return { runners: Object.fromEntries(runners), notes: [`${runs} runs`] };
}

export const pagesOfCells: Benchmark = {
  name: "pages-of-cells",
  measures:
    `What more cells cost a page: a hub's index finds ${PAGE} runs at a uniformly random offset, with the exact total, among ${RUNS.full} runs that 1, 10, 100 or 1,000 ` +
    `cells have made in turn. One thread, without HTTP and JSON. Contestants are filters by themselves, with random values; cells-… have none. A round's figure is the ` +
    `median of ${PAGES.full} pages.`,
  metric: { name: "time of a page", unit: "us", better: "lower" },
  contestants: CELLS.flatMap((cells) =>
    Object.keys(FILTERS).map((name) => ({ name: `${name}-${cells}`, description: `${cells} cells` })),
  ),
  peer: null,
  goals: [
    ...Object.keys(FILTERS)
      .filter((name) => name !== "serial")
      .flatMap((name) => [
        atMost(`${name}-100`, 2, "plant.md: at most log(cells) time a page", `${name}-10`),
        atMost(`${name}-1000`, 1.5, "plant.md: at most log(cells) time a page", `${name}-100`),
      ]),
    ...Object.entries(SERIAL_US).map(([cells, us]) =>
      atMost(`serial-${cells}`, us, "a page by serial number stays below the 5 ms of plant.md"),
    ),
  ],
  rounds: { warmup: 1, measured: 7 },
  timeoutSeconds: 600,
  open,
};
