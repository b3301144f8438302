import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { generateUuidV7 } from "../../core/identifiers.js";
import type { Change } from "../../core/link/change.js";
import { createRandom, type Random } from "../../core/random.js";
import type { QualityCheck } from "../../core/run/quality.js";
import { foldRun } from "../../core/run/run-fold.js";
import { openDataDirectory } from "../../storage/disk/data-directory.js";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { Log } from "../../storage/log/log.js";
import { encodeChanges } from "../../storage/records/change-record.js";
import { RecorderState } from "../../workers/recorder/recorder-state.js";
import type { BenchmarkContext } from "../harness/benchmark.js";

const RUNS = { smoke: 500, full: 1_000_000 };
/** Raise it when the same arguments make another store. */
const STORE_VERSION = 1;
const CHECKS = 10;
const FIRST_RUN_MS = Date.parse("2026-01-01T00:00:00Z");
const RUN_MS = 20_000;
/** How many bytes may wait in the log before the builder pauses to let it write. */
const PENDING_BYTES = 8 * 1024 * 1024;

export const CHECKED_PROGRAM = generateUuidV7(FIRST_RUN_MS - 1, new Uint8Array(10));

/** A store whose runs have ten checks each, all of one program. */
export interface CheckStore {
  path: string;
  runs: number;
  checks: number;
}

/** The store of a million runs with ten checks each, made unless it is there; without captures, frames and deltas. */
export async function prepareCheckStore({ size, storesDirectory, seed, log }: BenchmarkContext): Promise<CheckStore> {
  const runs = RUNS[size];
  const path = join(storesDirectory, `checks-${runs}-seed-${seed}-v${STORE_VERSION}`);
  if (!existsSync(path)) {
    const startMs = performance.now();
    const unfinished = `${path}.unfinished`;
    rmSync(unfinished, { recursive: true, force: true });
    mkdirSync(storesDirectory, { recursive: true });
    await build(unfinished, runs, createRandom(seed));
    renameSync(unfinished, path);
    log(`a store of ${runs} runs with checks was made in ${((performance.now() - startMs) / 1000).toFixed(1)} s`);
  }
  return { path, runs, checks: runs * CHECKS };
}

async function build(path: string, runs: number, random: Random): Promise<void> {
  const directory = await openDataDirectory({ path, creates: true, fileSystem: nodeFileSystem });
  const state = new RecorderState();
  const log = await Log.open({
    fileSystem: nodeFileSystem,
    directory: directory.metaPath,
    quarantineDirectory: directory.quarantinePath,
    durability: "none",
    openingState: () => state.openingState(),
    onRecords: () => {},
  });
  const append = async (change: Change, timeUs: number): Promise<void> => {
    const sequence = log.append({ ...encodeChanges(null, [change], undefined), timeUs });
    state.apply(null, [change], timeUs);
    if (log.pendingBytes > PENDING_BYTES) await log.whenCommitted(sequence);
  };
  const program = { id: CHECKED_PROGRAM, name: "Housing", status: "active", steps: [] } as const;
  await append({ kind: "program_put", program: { ...program, steps: [] } }, (FIRST_RUN_MS - 1) * 1000);
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
    await append({ kind: "run_ended", runId: id, run }, endUs);
  }
  await log.close();
  await directory.release();
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
