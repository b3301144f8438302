import type { Benchmark } from "../harness/benchmark.js";
import { durableAppends } from "./durable-appends.js";

/** Every benchmark, in the order in which they run. */
export const BENCHMARKS: readonly Benchmark[] = [durableAppends];

export function findBenchmark(name: string): Benchmark {
  const found = BENCHMARKS.find((benchmark) => benchmark.name === name);
  if (found === undefined) {
    throw new Error(`no benchmark is called ${name}; there are: ${BENCHMARKS.map((b) => b.name).join(", ")}`);
  }
  return found;
}
