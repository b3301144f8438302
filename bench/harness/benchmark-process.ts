/**
 * The process of one benchmark: `node benchmark-process.js <job as JSON>`, started by child-runner.ts. A process of its own for each
 * starts every benchmark with a fresh heap and code that was not optimised for another one.
 */

import { findBenchmark } from "../benchmarks/registry.js";
import type { BenchmarkContext } from "./benchmark.js";
import type { MeasuredBenchmark } from "./result.js";
import { disturbedNotes, type RoundPlan, runRounds } from "./rounds.js";
import { sendToRunner } from "./runner-channel.js";

export interface BenchmarkJob extends Omit<BenchmarkContext, "log"> {
  name: string;
  rounds: RoundPlan;
}

async function run(job: BenchmarkJob): Promise<void> {
  const log = (line: string): void => {
    // A line that is not sent because the runner is gone is nobody's loss: `disconnect` ends this process.
    sendToRunner({ type: "log", line }).catch(() => {});
  };
  const benchmark = findBenchmark(job.name);
  const startedAt = new Date().toISOString();
  const startMs = performance.now();
  const { unit } = benchmark.metric;
  const opened = await benchmark.open({ ...job, log });
  let contestants: MeasuredBenchmark["contestants"];
  try {
    contestants = await runRounds(
      benchmark,
      opened,
      job.rounds,
      (round, contestant, { value, seconds, stolenShare = 0 }, isAgain) => {
        const label = round < 0 ? "warm-up" : `round ${round + 1}/${job.rounds.measured}${isAgain ? " again" : ""}`;
        const stolen =
          stolenShare === 0 ? "" : `, ${(stolenShare * 100).toFixed(1)} % of the cores' time taken by the host`;
        log(`${label} ${contestant}: ${value.toPrecision(4)} ${unit} in ${seconds.toFixed(2)} s${stolen}`);
      },
    );
  } finally {
    await opened.close();
  }
  const seconds = (performance.now() - startMs) / 1000;
  const measured = {
    name: job.name,
    startedAt,
    seconds,
    notes: [...opened.notes, ...disturbedNotes(contestants, benchmark.peer)],
    missing: [...(opened.missing ?? [])],
    contestants,
  };
  await sendToRunner({ type: "measured", measured });
}

// The runner gone means nobody waits for figures: end, and with this process group all that was started.
process.on("disconnect", () => process.kill(-process.pid, "SIGTERM"));
await run(JSON.parse(process.argv[2] as string) as BenchmarkJob);
process.removeAllListeners("disconnect");
process.disconnect?.();
