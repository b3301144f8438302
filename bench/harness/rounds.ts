import type { Benchmark, OpenBenchmark, RoundSample } from "./benchmark.js";
import { type MachineCpu, machineCpuSeconds, stolenShare } from "./machine-cpu.js";
import { median } from "./statistics.js";

/**
 * A round in which the host took more of the cores' time from one of the contestants is not of them. A virtual machine that may use so much CPU time in
 * 100 ms, say, stands still for the rest of them: 35 ms at a time in which nobody is served, and one such stall is the 99th percentile of a
 * second of reads.
 */
export const DISTURBED_SHARE = 0.02;
const DISTURBED = `the host took over ${DISTURBED_SHARE * 100} % of the cores' time`;

/** All rounds of one contestant, in the order they ran: entry i of every contestant belongs to round i. */
export interface ContestantRounds {
  name: string;
  warmup: RoundSample[];
  rounds: RoundSample[];
  /** Of rounds that were measured again, in order; absent without any. */
  disturbed?: RoundSample[];
}

export interface RoundPlan {
  warmup: number;
  measured: number;
  /** How many disturbed rounds at most are measured again; those beyond them count, with a warning. Default: none. */
  again?: number;
}

/**
 * Runs the contestants in alternation: in every round each of them once, one right after the other, so that what the machine does
 * meanwhile (another load, a hot CPU, a slow disk) meets them all. Who begins rotates from round to round (A B, B A, A B …), because
 * what a contestant leaves behind (dirty pages, garbage) meets the one after it. Warm-up rounds are kept apart, and so are rounds that the
 * machine's host has disturbed, whichever contestant it met: such a round is measured again.
 */
export async function runRounds(
  benchmark: Pick<Benchmark, "contestants" | "name">,
  opened: OpenBenchmark,
  plan: RoundPlan,
  onRound: (round: number, contestant: string, sample: RoundSample, isAgain: boolean) => void,
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
  let again = plan.again ?? 0;
  let isAgain = false;
  for (let round = -plan.warmup; round < plan.measured; round++) {
    const count = results.length;
    const first = ((round % count) + count) % count;
    const samples = new Map<ContestantRounds, RoundSample>();
    for (let turn = 0; turn < count; turn++) {
      const result = results[(first + turn) % count] as ContestantRounds;
      const sample = await measure(result.name);
      samples.set(result, sample);
      onRound(round, result.name, sample, isAgain);
    }
    const isMeasuredAgain = round >= 0 && again > 0 && [...samples.values()].some(isDisturbed);
    isAgain = isMeasuredAgain;
    for (const [result, sample] of samples) {
      if (round < 0) result.warmup.push(sample);
      else if (isMeasuredAgain) result.disturbed = [...(result.disturbed ?? []), sample];
      else result.rounds.push(isDisturbed(sample) ? withWarning(sample) : sample);
    }
    if (!isMeasuredAgain) continue;
    again--;
    round--;
  }
  return results;
}

/** What a reader of the figures must know of rounds that were measured again: also what they had measured, since nothing is to be hidden in them. */
export function disturbedNotes(results: readonly ContestantRounds[], peer: string | null): string[] {
  const count = results[0]?.disturbed?.length ?? 0;
  if (count === 0) return [];
  const peers = results.find(({ name }) => name === peer);
  const allOf = ({ rounds, disturbed = [] }: ContestantRounds): number[] =>
    [...rounds, ...disturbed].map(({ value }) => value);
  const text = (values: readonly number[]): string => String(Number(median(values).toPrecision(3)));
  const medians = results.map((result) => {
    if (peers === undefined) return `${result.name} ${text(allOf(result))}`;
    const peerValues = allOf(peers);
    return `${result.name} / ${peers.name} ${text(allOf(result).map((value, nth) => value / (peerValues[nth] as number)))}`;
  });
  const ratios = medians.filter((_, nth) => results[nth] !== peers);
  return [
    `rounds measured again, since ${DISTURBED} from a contestant: ${count}; medians with these rounds among the others: ${ratios.join(", ")}`,
  ];
}

function isDisturbed({ stolenShare: share = 0 }: RoundSample): boolean {
  return share > DISTURBED_SHARE;
}

function withWarning(sample: RoundSample): RoundSample {
  return { ...sample, warnings: [...(sample.warnings ?? []), DISTURBED] };
}
