import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Mutant } from "./store-mutants.js";

export interface MutantRun {
  mutant: Mutant;
  /** What said that something is wrong; null when nothing did. */
  killedBy: string | null;
  /** Killed by nothing else than that it came to no end. */
  isHang: boolean;
  seconds: number;
}

const TIMEOUT_MS = 180_000;

/** How often the text that a mutant replaces stands in its file: it must be once. */
export function occurrences({ file, find }: Mutant): number {
  return readFileSync(`dist/${file}`, "utf8").split(find).length - 1;
}

/**
 * Runs what is to kill the mutant, with the mutant in it and in all processes that it starts, until something is wrong: an assertion fails, it comes to
 * no end in its time (`isHang`), or the process does not end well.
 */
export async function runMutant(mutant: Mutant): Promise<MutantRun> {
  const { killer } = mutant;
  const begin = performance.now();
  const args =
    typeof killer === "string"
      ? [`dist/test/${killer}.test.js`]
      : ["dist/test/helpers/simulated-stores-process.js", "1", String(killer.seeds), "1"];
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "pipe"],
    // A group of its own: what the test has started ends with it.
    detached: true,
    env: {
      ...process.env,
      NODE_OPTIONS: `--import ${new URL("./register-mutant.js", import.meta.url)}`,
      MUTANT: JSON.stringify(mutant),
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
  let test = "";
  let lastError = "";
  createInterface({ input: child.stderr }).on("line", (line) => {
    if (line.trim() !== "") lastError = line;
  });
  createInterface({ input: child.stdout }).on("line", (line) => {
    test = /^# Subtest: (.*)$/.exec(line)?.[1] ?? test;
    if (killedBy !== null) return;
    killedBy = typeof killer === "string" ? failedAssertion(line, test) : failedSeed(line);
    if (killedBy !== null) kill();
  });
  let isTooSlow = false;
  const timer = setTimeout(() => {
    isTooSlow = true;
    kill();
  }, TIMEOUT_MS);
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  clearTimeout(timer);
  // A test that waits for what does not come any more: nobody would take that for a pass.
  const isHang = isTooSlow && killedBy === null;
  if (isHang) killedBy = `no end within ${TIMEOUT_MS / 1_000} s`;
  if (killedBy === null && code !== 0) killedBy = `the process ends: ${lastError}`;
  return { mutant, killedBy, isHang, seconds: (performance.now() - begin) / 1_000 };
}

function failedAssertion(line: string, test: string): string | null {
  const match = /^\s*not ok \d+ - (.*)$/.exec(line);
  return match === null || / # (SKIP|TODO)\b/.test(line) ? null : `${test}: ${match[1]}`;
}

function failedSeed(line: string): string | null {
  const { failed } = JSON.parse(line) as { failed: { seed: number; faults: string[] }[] };
  return failed[0] === undefined ? null : `seed ${failed[0].seed}: ${failed[0].faults[0]}`;
}
