import type { Benchmark, OpenBenchmark, RoundSample } from "./benchmark.js";

/** All rounds of one contestant, in the order they ran: entry i of every contestant belongs to round i. */
export interface ContestantRounds {
  name: string;
  warmup: RoundSample[];
  rounds: RoundSample[];
}

/**
 * Runs the contestants in alternation: in every round each of them once, one right after the other, so that what the machine does
 * meanwhile (another load, a hot CPU, a slow disk) meets them all. Who begins rotates from round to round (A B, B A, A B …), because
 * what a contestant leaves behind (dirty pages, garbage) meets the one after it. Warm-up rounds are kept apart.
 */
export async function runRounds(
  benchmark: Pick<Benchmark, "contestants" | "name">,
  opened: OpenBenchmark,
  plan: { warmup: number; measured: number },
  onRound: (round: number, contestant: string, sample: RoundSample) => void,
): Promise<ContestantRounds[]> {
  const missing = new Set(opened.missing?.map(({ name }) => name));
  const results = benchmark.contestants
    .filter(({ name }) => !missing.has(name))
    .map(({ name }): ContestantRounds => ({ name, warmup: [], rounds: [] }));
  for (let round = -plan.warmup; round < plan.measured; round++) {
    const count = results.length;
    const first = ((round % count) + count) % count;
    for (let turn = 0; turn < count; turn++) {
      const result = results[(first + turn) % count] as ContestantRounds;
      const runner = opened.runners[result.name];
      if (runner === undefined) throw new Error(`${benchmark.name}: no runner for its contestant ${result.name}`);
      const sample = await runner();
      if (!Number.isFinite(sample.value) || sample.value <= 0) {
        throw new Error(`${benchmark.name}: ${result.name} measured ${sample.value}, which is no measurement`);
      }
      (round < 0 ? result.warmup : result.rounds).push(sample);
      onRound(round, result.name, sample);
    }
  }
  return results;
}
