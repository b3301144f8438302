import { cpSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { generateUuidV7 } from "../../core/identifiers.js";
import { createRandom, type Random } from "../../core/random.js";
import type { QualityCheck } from "../../core/run/quality.js";
import { foldRun } from "../../core/run/run-fold.js";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { FindingsReader } from "../../storage/findings/segment-findings.js";
import type { BenchmarkContext } from "../harness/benchmark.js";
import { type ServiceProcess, startService } from "./http/service-process.js";
import { type Append, prepareStore } from "./store-builder.js";

const RUNS = { smoke: 500, full: 1_000_000 };
/** Raise it when the same arguments make another store. */
const STORE_VERSION = 3;
export const CHECKS = 10;
const FIRST_RUN_MS = Date.parse("2026-01-01T00:00:00Z");
const RUN_MS = 20_000;
export const CHECKED_PROGRAM = generateUuidV7(FIRST_RUN_MS - 1, new Uint8Array(10));

/** A service whose store has a million runs of one program, with ten checks each: no captures, frames and deltas. */
export interface CheckedService extends ServiceProcess {
  runs: number;
  /** Address of the program. */
  program: string;
}

/** Starts it over a copy of the store, whose columns for statistics are made already, as they are some time after a start. */
export async function startCheckedService(context: BenchmarkContext): Promise<CheckedService> {
  const { path, runs } = await prepareCheckStore(context);
  const copy = join(context.directory, "checks");
  cpSync(path, copy, { recursive: true });
  return checkedService(await startService(context, copy), runs);
}

/** Starts it over a copy of the store without columns, as after they were deleted. It can be stopped and started again. */
export async function startColdService(context: BenchmarkContext): Promise<CheckedService> {
  const { path, runs } = await prepareCheckStore(context);
  const copy = join(context.directory, "cold-checks");
  if (!existsSync(copy)) cpSync(path, copy, { recursive: true });
  rmSync(join(copy, "findings"), { recursive: true, force: true });
  return checkedService(await startService(context, copy, { name: "cold" }), runs);
}

function checkedService(service: ServiceProcess, runs: number): CheckedService {
  return { ...service, runs, program: `${service.url}/programs/${CHECKED_PROGRAM}` };
}

async function prepareCheckStore(context: BenchmarkContext): Promise<{ path: string; runs: number }> {
  const { size, seed } = context;
  const runs = RUNS[size];
  const path = await prepareStore(
    context,
    `checks-${runs}-seed-${seed}-v${STORE_VERSION}`,
    (append) => fill(append, runs, createRandom(seed)),
    async (made) => {
      const reader = new FindingsReader(nodeFileSystem);
      while (await reader.makeMissing(made));
    },
  );
  return { path, runs };
}

async function fill(append: Append, runs: number, random: Random): Promise<void> {
  const program = { id: CHECKED_PROGRAM, name: "Housing", status: "active", steps: [] } as const;
  await append([{ kind: "program_put", program: { ...program, steps: [] } }], undefined, (FIRST_RUN_MS - 1) * 1000);
  let id: string | null = null;
  for (let nth = 0; nth < runs; nth++) {
    const beginUs = (FIRST_RUN_MS + nth * RUN_MS) * 1000;
    id = generateUuidV7(beginUs / 1000, random.bytes(10), id);
    const created = { kind: "run_created", runId: id, programId: CHECKED_PROGRAM, programName: "Housing" } as const;
    const part = { robotId: null, serialNumber: `SN-${String(nth).padStart(7, "0")}`, revision: 1 };
    const run = foldRun(undefined, { ...created, ...part, metadata: null, traceId: null, steps: [] }, beginUs);
    const endUs = beginUs + random.integer(5_000_000, 15_000_000);
    run.status = "completed";
    run.startedAtUs = beginUs + 1_000;
    run.updatedAtUs = endUs;
    run.completedAtUs = endUs;
    run.checks = Array.from({ length: CHECKS }, (_, at) => checkOf(random, at));
    if (random.chance(0.02)) run.defects = [{ type: random.pick(["scratch", "dent"]), severity: "minor" }];
    await append([{ kind: "run_ended", runId: id, run }], undefined, endUs);
  }
}

function checkOf(random: Random, at: number): QualityCheck {
  const nominal = 10 + at;
  const value = Math.round((nominal + random.normal() * 0.03) * 10_000) / 10_000;
  const delta = value - nominal;
  return {
    name: `Bore ${at + 1} diameter`,
    status: Math.abs(delta) <= 0.1 ? "passed" : "failed",
    value,
    nominal,
    delta,
    threshold: 0.1,
  };
}
