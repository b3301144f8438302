import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { ReportedChange } from "./mutant-hooks.js";
import type { Mutant, SourceChange } from "./store-mutants.js";

export type Killer = Mutant["killer"];

export interface MutantRun {
  mutant: Mutant;
  /** Not run: the module never had the change, or the killer fails without it too. Then what it said says nothing of the mutant. */
  verdict: "killed" | "survived" | "not run";
  /** What said that something is wrong; null when nothing did. */
  killedBy: string | null;
  /** Killed by nothing else than that it came to no end. */
  isHang: boolean;
  seconds: number;
}

interface KillerRun extends Pick<MutantRun, "killedBy" | "isHang" | "seconds"> {
  /** The module was loaded with the change in it. */
  isApplied: boolean;
  /** The seed of the simulation that failed. */
  seed: number | null;
}

const TIMEOUT_MS = 180_000;
const SIMULATED_STORES = "dist/test/helpers/store/simulation/simulated-stores-process.js";
const REGISTRATION = new URL("./register-mutant.js", import.meta.url);

/** How often the text that a mutant replaces stands in its file: it must be once. */
export function occurrences({ file, find }: SourceChange): number {
  return readFileSync(`dist/${file}`, "utf8").split(find).length - 1;
}

/**
 * Runs the killer of each mutant, and each killer once without any change, through the same hook: a killer that fails
 * without a change, or a hook that cannot do its work, has killed nothing.
 *
 * @param jobs so many at a time
 */
export async function runMutants(
  mutants: readonly Mutant[],
  jobs: number,
  registration = REGISTRATION,
): Promise<MutantRun[]> {
  const runs = new Map<Mutant, KillerRun>();
  await inTurns(mutants, jobs, async (mutant) => {
    runs.set(mutant, await runKiller(mutant.killer, mutant, registration));
  });
  const faults = new Map<Killer, string | null>();
  await inTurns([...new Set(mutants.map(({ killer }) => killer))], jobs, async (killer) => {
    const [first, ...others] = mutants.filter((mutant) => mutant.killer === killer);
    if (first === undefined) return;
    const unchanged = { file: first.file, find: first.find, replace: first.find };
    let sufficient = killer;
    if (typeof killer !== "string") {
      // Only the seeds up to the last one that found something: those after it have told nothing.
      const seeds = [first, ...others].map((mutant) => runs.get(mutant)?.seed ?? 0);
      sufficient = { ...killer, seeds: Math.max(1, ...seeds.map((seed) => seed - killer.firstSeed + 1)) };
    }
    faults.set(killer, faultOf(await runKiller(sufficient, unchanged, registration)));
  });
  return mutants.map((mutant) => {
    const { killedBy, isHang, isApplied, seconds } = runs.get(mutant) as KillerRun;
    const fault = faults.get(mutant.killer) ?? (isApplied ? null : NOT_LOADED);
    if (fault !== null) return { mutant, verdict: "not run", killedBy: fault, isHang: false, seconds };
    return { mutant, verdict: killedBy === null ? "survived" : "killed", killedBy, isHang, seconds };
  });
}

const NOT_LOADED = "the module was not loaded with the change in it";

/** Why a run without any change tells that others would tell nothing; null when it does not. */
function faultOf({ killedBy, isApplied }: KillerRun): string | null {
  if (killedBy !== null) return `it fails without any change: ${killedBy}`;
  return isApplied ? null : `without any change, ${NOT_LOADED}`;
}

async function inTurns<T>(items: readonly T[], jobs: number, work: (item: T) => Promise<void>): Promise<void> {
  const waiting = [...items];
  const workOff = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: jobs }, workOff));
}

/**
 * Runs the killer, with the change in it and in all processes that it starts, until something is wrong: an assertion fails, it comes to
 * no end in its time (`isHang`), or the process does not end well.
 */
async function runKiller(killer: Killer, { file, find, replace }: SourceChange, registration: URL): Promise<KillerRun> {
  const begin = performance.now();
  const folder = mkdtempSync(join(tmpdir(), "mutant-"));
  const change: ReportedChange = { file, find, replace, report: join(folder, "loaded") };
  const args =
    typeof killer === "string"
      ? [...process.execArgv, `dist/test/${killer}.test.js`]
      : [SIMULATED_STORES, String(killer.firstSeed), String(killer.seeds), "1"];
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "pipe"],
    // A group of its own: what the test has started ends with it.
    detached: true,
    env: {
      ...process.env,
      NODE_OPTIONS: `--import ${registration}`,
      MUTANT: JSON.stringify(change),
      TEST_SIZE: "ci",
      TAP_TIMEOUT: String(TIMEOUT_MS / 1_000),
    },
  });
  const kill = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch (error) {
      // Nothing of the group is left.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  };
  let killedBy: string | null = null;
  let seed: number | null = null;
  let test = "";
  let lastError = "";
  createInterface({ input: child.stderr }).on("line", (line) => {
    if (line.trim() !== "") lastError = line;
  });
  createInterface({ input: child.stdout }).on("line", (line) => {
    test = /^# Subtest: (.*)$/.exec(line)?.[1] ?? test;
    if (killedBy !== null) return;
    if (typeof killer === "string") killedBy = failedAssertion(line, test);
    else [seed, killedBy] = failedSeed(line);
    if (killedBy !== null) kill();
  });
  let isTooSlow = false;
  const timer = setTimeout(() => {
    isTooSlow = true;
    kill();
  }, TIMEOUT_MS);
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  clearTimeout(timer);
  // The test waits for something that never comes. Nobody would take that for a pass.
  const isHang = isTooSlow && killedBy === null;
  if (isHang) killedBy = `no end within ${TIMEOUT_MS / 1_000} s`;
  if (killedBy === null && code !== 0) killedBy = `the process ends: ${lastError}`;
  const isApplied = existsSync(change.report);
  rmSync(folder, { recursive: true });
  return { killedBy, isHang, isApplied, seed, seconds: (performance.now() - begin) / 1_000 };
}

function failedAssertion(line: string, test: string): string | null {
  const match = /^\s*not ok \d+ - (.*)$/.exec(line);
  return match === null || / # (SKIP|TODO)\b/.test(line) ? null : `${test}: ${match[1]}`;
}

function failedSeed(line: string): [seed: number | null, fault: string | null] {
  const { failed } = JSON.parse(line) as { failed: { seed: number; faults: string[] }[] };
  const [first] = failed;
  return first === undefined ? [null, null] : [first.seed, `seed ${first.seed}: ${first.faults[0]}`];
}
