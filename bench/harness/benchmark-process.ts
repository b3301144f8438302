/**
 * The process of one benchmark: `node benchmark-process.js <job as JSON>`, started by child-runner.ts. A process of its own for each
 * starts every benchmark with a fresh heap and code that was not optimised for another one.
 */

import { findBenchmark } from "../registry.js";
import type { BenchmarkContext } from "./benchmark.js";
import type { Measured } from "./result.js";
import { disturbedNotes, type RoundPlan, runRounds } from "./rounds.js";

export interface BenchmarkJob extends Omit<BenchmarkContext, "log" | "onClose"> {
  name: string;
  rounds: RoundPlan;
}

/** What a benchmark's process says to its runner. */
export type BenchmarkMessage = { type: "log"; line: string } | { type: "measured"; measured: Measured };

/** Resolves when the message has left this process. A result is megabytes of histograms; when a process ends, unsent bytes are lost. */
function sendToRunner(message: BenchmarkMessage): Promise<void> {
  return new Promise((resolve, reject) => {
    if (process.send === undefined)
      return reject(new Error("this process has no runner: start it with child-runner.js"));
    process.send(message, undefined, undefined, (error) => (error === null ? resolve() : reject(error)));
  });
}

function log(line: string): void {
  // If the runner is gone, nobody needs the line: `disconnect` ends this process.
  sendToRunner({ type: "log", line }).catch(() => {});
}

async function measure(job: BenchmarkJob, closers: (() => unknown)[]): Promise<Measured> {
  const benchmark = findBenchmark(job.name);
  const opened = await benchmark.open({ ...job, log, onClose: (closer) => closers.push(closer) });
  const contestants = await runRounds(benchmark, opened, job.rounds, ({ round, name, sample, isAgain }) => {
    const { value, seconds, stolenShare = 0 } = sample;
    const label = round < 0 ? "warm-up" : `round ${round + 1}/${job.rounds.measured}${isAgain ? " again" : ""}`;
    const stolen = stolenShare === 0 ? "" : `, the host took ${(stolenShare * 100).toFixed(1)} % of the cores' time`;
    log(`${label} ${name}: ${value.toPrecision(4)} ${benchmark.metric.unit} in ${seconds.toFixed(2)} s${stolen}`);
  });
  const notes = [...opened.notes, ...disturbedNotes(contestants)];
  return { notes, missing: [...(opened.missing ?? [])], contestants };
}

async function run(job: BenchmarkJob): Promise<void> {
  const closers: (() => unknown)[] = [];
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).reverse()) await closer();
  };
  try {
    const measured = await measure(job, closers);
    // A server that does not end cleanly fails its benchmark.
    await close();
    await sendToRunner({ type: "measured", measured });
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
}

// Without the runner nobody waits for figures. So end this process, and with its group everything that it has started.
process.on("disconnect", () => process.kill(-process.pid, "SIGTERM"));
await run(JSON.parse(process.argv[2] as string) as BenchmarkJob);
process.removeAllListeners("disconnect");
process.disconnect?.();
