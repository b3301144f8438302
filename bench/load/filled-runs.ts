import { createRandom } from "../../core/random.js";
import type { BenchmarkContext } from "../harness/benchmark.js";
import type { ServiceProcess } from "./http/service-process.js";
import { fetchTotal, produceRun, putPrograms, waitUntil } from "./run-producer.js";

const PROGRAMS = 10;
/** What filled runs end with. */
export const OUTCOMES = ["completed", "failed", "cancelled"] as const;

export interface FilledRun {
  id: string;
  programId: string;
  serialNumber: string;
  status: (typeof OUTCOMES)[number];
}

/** Fills the store over the cell link, pipelined; the runs come back in order of creation. */
export async function fillRuns(
  service: ServiceProcess,
  context: BenchmarkContext,
  count: number,
): Promise<FilledRun[]> {
  const random = createRandom(context.seed);
  const client = await service.connect("bench-fill");
  const programs = await putPrograms(client, PROGRAMS, 4);
  const runs: FilledRun[] = [];
  const startMs = performance.now();
  for (let i = 0; i < count; i++) {
    const roll = random.next();
    const outcome = roll < 0.85 ? "completed" : roll < 0.95 ? "failed" : "cancelled";
    const program = random.pick(programs);
    // A fifth as many serial numbers as runs: parts are inspected again.
    const serialNumber = `SN-${String(random.integer(1, Math.ceil(count / 5))).padStart(6, "0")}`;
    const id = await produceRun(client, random, { program, serialNumber, outcome, steps: 4, events: 1, checks: 2 });
    runs.push({ id, programId: program.id, serialNumber, status: outcome });
  }
  await client.close();
  service.assertNothingRefused();
  const completed = runs.filter(({ status }) => status === "completed").length;
  await waitUntil(
    "the end of every run",
    async () => (await fetchTotal(`${service.url}/runs?status=completed&limit=1`)) === completed,
  );
  context.log(`${count} runs filled over the cell link in ${((performance.now() - startMs) / 1000).toFixed(1)} s`);
  return runs;
}
