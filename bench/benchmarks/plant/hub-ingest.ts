import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../../harness/benchmark.js";
import { atLeast } from "../../harness/goal.js";
import { missingWithoutNats, startHub, startPlant, untilShown } from "../../load/plant/plant-store.js";
import { cpuSecondsOf } from "../../load/process-cpu.js";

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const { store, server, hub } = await startPlant(context);
  await hub.stop();
  const measure = async (): Promise<RoundSample> => {
    const directory = join(context.directory, "empty-hub");
    const startMs = performance.now();
    const filled = await startHub(context, server.url, directory);
    await untilShown(filled, store.runs);
    const seconds = (performance.now() - startMs) / 1000;
    const cpuSeconds = cpuSecondsOf(filled.pid);
    await filled.stop();
    rmSync(directory, { recursive: true });
    return {
      value: (store.runs / seconds) * 60,
      seconds,
      details: { "CPU us/run": (cpuSeconds * 1e6) / store.runs },
    };
  };
  return { runners: { hub: measure }, notes: [`${store.runs} runs of ${store.cells.length} cells`] };
}

export const hubIngest: Benchmark = {
  name: "hub-ingest",
  measures:
    "Runs that a hub takes from the streams of 100 cells with 10,000 runs each, in a minute: from the start of a hub with an empty folder until its list has all of " +
    "them. Each run is one record of 1 to 1.5 KB, in messages of 512 KiB. The server is on the same machine.",
  metric: { name: "runs taken", unit: "runs/min", better: "higher" },
  contestants: [{ name: "hub", description: "server, connection, log and view, default settings" }],
  peer: null,
  goals: [atLeast("hub", 20_000, "plant.md: at least 20,000 runs a minute")],
  rounds: { warmup: 0, measured: 6 },
  timeoutSeconds: 1800,
  open: missingWithoutNats(["hub"], open),
};
