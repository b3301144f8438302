import type { Benchmark, OpenBenchmark, RoundSample } from "./benchmark.js";
import { type MachineCpu, machineCpuSeconds, stolenShare } from "./machine-cpu.js";
import { median } from "./statistics.js";

/**
 * A round in which the machine's host took more of the cores' time from one of the contestants is measured again. A virtual machine with a limit
 * of CPU time per 100 ms, for example, stops for 35 ms at a time; one such stop alone decides the 99th percentile of a second of reads.
 */
const DISTURBED_SHARE = 0.02;
const DISTURBED = `the host took over ${DISTURBED_SHARE * 100} % of the cores' time`;

/** All rounds of one contestant, in the order they ran: entry i of every contestant belongs to round i. */
export interface ContestantRounds {
  name: string;
  warmup: RoundSample[];
  rounds: RoundSample[];
  /** The disturbed rounds that were measured again, in order; absent if there are none. */
  disturbed?: RoundSample[];
}

export interface RoundPlan {
  warmup: number;
  measured: number;
  /** How many disturbed rounds at most are measured again; those beyond them count, with a warning. */
  again: number;
}

/** What one contestant measured in one round. */
export interface Measurement {
  /** Negative in warm-up. */
  round: number;
  name: string;
  sample: RoundSample;
  isAgain: boolean;
}

/**
 * Runs the contestants in alternation: in every round each of them once, one right after the other. So what the machine does
 * meanwhile (another load, a hot CPU, a slow disk) disturbs them all. The first one changes from round to round (A B, B A, A B …), because
 * what a contestant leaves behind (dirty pages, garbage) slows down the next one. Warm-up rounds are kept apart, and so are disturbed ones.
 */
export async function runRounds(
  benchmark: Pick<Benchmark, "contestants" | "name">,
  opened: OpenBenchmark,
  plan: RoundPlan,
  onMeasured: (measurement: Measurement) => void,
  machine: () => MachineCpu = machineCpuSeconds,
): Promise<ContestantRounds[]> {
  const missing = new Set(opened.missing?.map(({ name }) => name));
  const results = benchmark.contestants
    .filter(({ name }) => !missing.has(name))
    .map(({ name }): ContestantRounds => ({ name, warmup: [], rounds: [] }));
  const measure = async (name: string): Promise<RoundSample> => {
    const runner = opened.runners[name];
    if (runner === undefined) throw new Error(`${benchmark.name}: no runner for its contestant ${name}`);
    const before = machine();
    const sample = await runner();
    if (!Number.isFinite(sample.value) || sample.value <= 0) {
      throw new Error(`${benchmark.name}: ${name} measured ${sample.value}, which is no measurement`);
    }
    return { ...sample, stolenShare: sample.stolenShare ?? stolenShare(before, machine()) };
  };
  let { again } = plan;
  let isAgain = false;
  for (let round = -plan.warmup; round < plan.measured; round++) {
    const count = results.length;
    const first = ((round % count) + count) % count;
    const samples = new Map<ContestantRounds, RoundSample>();
    for (let nth = 0; nth < count; nth++) {
      const result = results[(first + nth) % count] as ContestantRounds;
      const sample = await measure(result.name);
      samples.set(result, sample);
      onMeasured({ round, name: result.name, sample, isAgain });
    }
    isAgain = round >= 0 && again > 0 && [...samples.values()].some(isDisturbed);
    for (const [result, sample] of samples) {
      if (round < 0) result.warmup.push(sample);
      else if (isAgain) result.disturbed = [...(result.disturbed ?? []), sample];
      else result.rounds.push(isDisturbed(sample) ? withWarning(sample) : sample);
    }
    if (!isAgain) continue;
    again--;
    round--;
  }
  return results;
}

/** How many rounds were measured again, and the medians with them among the others: a stall that the service caused must not vanish. */
export function disturbedNotes(results: readonly ContestantRounds[]): string[] {
  const count = results[0]?.disturbed?.length ?? 0;
  if (count === 0) return [];
  const medians = results.map(({ name, rounds, disturbed = [] }) => {
    const all = median([...rounds, ...disturbed].map(({ value }) => value));
    return `${name} ${Number(all.toPrecision(3))}`;
  });
  return [`${count} rounds were measured again, since ${DISTURBED}; medians with them: ${medians.join(", ")}`];
}

function isDisturbed({ stolenShare: share = 0 }: RoundSample): boolean {
  return share > DISTURBED_SHARE;
}

function withWarning(sample: RoundSample): RoundSample {
  return { ...sample, warnings: [...(sample.warnings ?? []), DISTURBED] };
}
