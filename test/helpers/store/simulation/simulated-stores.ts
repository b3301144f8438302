import { noCounts, type SimulationCounts } from "./simulation-report.js";
import { simulateStore } from "./store-simulation.js";

/** What many histories came to. */
export interface SimulatedStores extends SimulationCounts {
  seeds: number;
  failed: { seed: number; faults: string[] }[];
}

export function noStores(): SimulatedStores {
  return { seeds: 0, failed: [], ...noCounts() };
}

/** Adds the figures of one to the other's. */
export function addStores(sum: SimulatedStores, one: SimulatedStores): void {
  sum.seeds += one.seeds;
  sum.failed.push(...one.failed);
  for (const group of ["counts", "crashes", "errors"] as const) {
    const figures = sum[group] as Record<string, number>;
    for (const [name, count] of Object.entries(one[group])) figures[name] = (figures[name] ?? 0) + count;
  }
}

/** Simulates the stores of `count` seeds from the first one on; ends early when `mostFailed` have failed. */
export async function simulateStores(
  first: number,
  count: number,
  { mostFailed = 10, restarts = true } = {},
): Promise<SimulatedStores> {
  const sum = noStores();
  for (let seed = first; seed < first + count && sum.failed.length < mostFailed; seed++) {
    const { faults, ...counts } = await simulateStore(seed, null, restarts);
    addStores(sum, { seeds: 1, failed: faults.length > 0 ? [{ seed, faults }] : [], ...counts });
  }
  return sum;
}
