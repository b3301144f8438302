import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { Benchmark, Goal, OpenBenchmark, RoundSample } from "../../harness/benchmark.js";
import { LatencyHistogram } from "../../harness/latency-histogram.js";
import { machineCpuSeconds } from "../../harness/machine-cpu.js";
import type { ReadAnswer, ReadCommand, ReadFigures } from "./read-process.js";

/** As many as a screen that refreshes and clients that follow send: far fewer than the front can take, so reads do not wait for reads. */
export const READS_PER_SECOND = 200;
/** What is read and timed, for `measures`. */
export const READS =
  `GET /runs?limit=50 and GET /runs/{run_id} of finished runs in turn, ${READS_PER_SECOND} a second in an open loop: the clock of a read starts when it was ` +
  "meant to be sent and stops at the last byte of its answer. A round's figure is the 99th percentile of both together, of slices that alternate with those of the " +
  "others, so that whatever else the machine does meets all alike. Reader, load and service share the machine's cores, all with the same priority.";
/** Number of runs whose details are read, one after the other. */
const DETAILS = 64;
/** If the cores are busier than this, a read waits for a core, whatever the service does. */
const SATURATED = 0.95;

/**
 * The reader is a process of its own. Other work of the benchmark, such as a producer of captures, collects garbage and gives memory back to the
 * system. In one process, even in another thread, that would add to the latency of the reads.
 */
let reader: ChildProcess | undefined;

function startReader(): ChildProcess {
  const child = fork(new URL("./read-process.js", import.meta.url));
  const forget = (): void => {
    if (reader === child) reader = undefined;
  };
  // It may also end between two slices. Then a new one reads the next slice.
  child.once("exit", forget);
  child.once("error", forget);
  reader = child;
  return child;
}

async function readInProcess(command: ReadCommand): Promise<ReadFigures> {
  const [child, over] = [reader ?? startReader(), new AbortController()];
  // It keeps this process alive only while it reads. It ends when this process ends.
  child.ref();
  child.channel?.ref();
  const { signal } = over;
  const ended = once(child, "exit", { signal }).then(([code, by]) => {
    throw new Error(`the reader ended with ${by ?? code}`);
  });
  const answered = once(child, "message", { signal });
  const sent = new Promise<never>((_, reject) => child.send(command, (error) => error !== null && reject(error)));
  try {
    const [answer] = (await Promise.race([answered, ended, sent])) as [ReadAnswer];
    if ("error" in answer) throw new Error(answer.error);
    return answer;
  } finally {
    for (const one of [answered, ended, sent]) one.catch(() => {});
    over.abort();
    child.channel?.unref();
    child.unref();
  }
}

/** The figures of all slices of one contestant in one round. */
export class ReadSlices {
  readonly #all = new LatencyHistogram();
  readonly #lists = new LatencyHistogram();
  readonly #details = new LatencyHistogram();
  /** Latencies from the real time of sending: without the time for which the reader itself waited for a core. */
  readonly #sent = new LatencyHistogram();
  #count = 0;
  #seconds = 0;
  #lateSends = 0;
  #busySeconds = 0;
  #stolenSeconds = 0;
  #cpuSeconds = 0;
  readonly #loads = new Map<string, { amount: number; seconds: number }>();
  readonly #shares = new Map<string, { seconds: number; ofSeconds: number; leastPercent: number }>();

  /** Reads lists and details in turn at a fixed rate. */
  async read(url: string, ids: readonly string[], count: number): Promise<void> {
    const before = machineCpuSeconds();
    const figures = await readInProcess({ url, ids: ids.slice(-DETAILS), count, ratePerSecond: READS_PER_SECOND });
    this.#all.add(figures.all);
    this.#lists.add(figures.lists);
    this.#details.add(figures.details);
    this.#sent.add(figures.sent);
    this.#count += count;
    this.#seconds += figures.seconds;
    this.#lateSends += figures.lateSends;
    const after = machineCpuSeconds();
    this.#busySeconds += after.busy - before.busy;
    this.#stolenSeconds += after.stolen - before.stolen;
    this.#cpuSeconds += after.all - before.all;
  }

  /** Adds work that was done beside the reads. It is reported as a rate of this name. */
  addLoad(name: string, amount: number, seconds: number): void {
    const load = this.#loads.get(name) ?? { amount: 0, seconds: 0 };
    this.#loads.set(name, { amount: load.amount + amount, seconds: load.seconds + seconds });
  }

  /** Adds for how long of the slice the named state held. It is reported in percent of all slices, with a warning below `leastPercent`. */
  addShare(name: string, seconds: number, ofSeconds: number, leastPercent: number): void {
    const share = this.#shares.get(name) ?? { seconds: 0, ofSeconds: 0 };
    const all = { seconds: share.seconds + seconds, ofSeconds: share.ofSeconds + ofSeconds };
    this.#shares.set(name, { ...all, leastPercent });
  }

  sample(): RoundSample {
    const p99Ms = (latency: LatencyHistogram): number => latency.percentileNs(0.99) / 1e6;
    // Some systems do not tell the CPU time of their cores. Then neither share is known.
    const cpuSeconds = this.#cpuSeconds || 1;
    const busy = this.#busySeconds / cpuSeconds;
    const warnings: string[] = [];
    if (this.#lateSends > this.#count / 100) warnings.push("the reader fell behind in over 1 % of its requests");
    if (busy > SATURATED) warnings.push("all cores were busy: reads waited for a core, not for the service");
    const percents = [...this.#shares].map(([name, { seconds, ofSeconds, leastPercent }]) => {
      const percent = (100 * seconds) / ofSeconds;
      if (percent < leastPercent) warnings.push(`${name} is below ${leastPercent}`);
      return [name, percent] as const;
    });
    return {
      value: p99Ms(this.#all),
      seconds: this.#seconds,
      stolenShare: this.#stolenSeconds / cpuSeconds,
      latency: this.#all.toData(),
      details: {
        "list p50 ms": this.#lists.percentileNs(0.5) / 1e6,
        "list p99 ms": p99Ms(this.#lists),
        "detail p50 ms": this.#details.percentileNs(0.5) / 1e6,
        "detail p99 ms": p99Ms(this.#details),
        "p99 from send ms": p99Ms(this.#sent),
        "late sends": this.#lateSends,
        "cores busy %": busy * 100,
        ...Object.fromEntries([...this.#loads].map(([name, { amount, seconds }]) => [name, amount / seconds])),
        ...Object.fromEntries(percents),
      },
      ...(warnings.length > 0 && { warnings }),
    };
  }
}

/**
 * A benchmark of reads beside loads. None of its contestants is a peer: the first one, without a load, is the service too. The goal of the others
 * is at most so many times its figure.
 */
export function readsBeside({
  goal,
  ...own
}: Omit<Benchmark, "metric" | "peer" | "rounds" | "goals"> & { goal: Pick<Goal, "target" | "source"> }): Benchmark {
  const metric = { name: "p99 latency of reads", unit: "ms", better: "lower" } as const;
  const [quiet = "", ...loaded] = own.contestants.map(({ name }) => name);
  const goals = loaded.map((contestant) => ({ contestant, peer: quiet, direction: "at-most", ...goal }) as const);
  return { ...own, metric, goals, peer: null, rounds: { warmup: 1, measured: 7 } };
}

/** Runners whose slices alternate. The first runner that is asked in a round measures the whole round for all. */
export function alternatingSlices<Name extends string>(
  names: readonly Name[],
  slicesPerRound: number,
  measureSlice: (name: Name, slices: ReadSlices) => Promise<void>,
): OpenBenchmark["runners"] {
  let round = new Map<Name, RoundSample>();
  let rounds = 0;
  const measureRound = async (): Promise<void> => {
    const all = names.map((name) => ({ name, slices: new ReadSlices() }));
    const first = rounds++;
    for (let turn = first; turn < first + slicesPerRound; turn++) {
      for (let at = 0; at < all.length; at++) {
        const { name, slices } = all[(turn + at) % all.length] as (typeof all)[number];
        await measureSlice(name, slices);
      }
    }
    round = new Map(all.map(({ name, slices }) => [name, slices.sample()]));
  };
  const runnerOf = (name: Name) => async (): Promise<RoundSample> => {
    if (!round.has(name)) await measureRound();
    const sample = round.get(name) as RoundSample;
    round.delete(name);
    return sample;
  };
  return Object.fromEntries(names.map((name) => [name, runnerOf(name)]));
}
