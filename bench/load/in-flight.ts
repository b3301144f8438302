import type { OpenBenchmark, RoundSample } from "../harness/benchmark.js";
import { LatencyHistogram } from "../harness/latency-histogram.js";
import { type Groups, writePlainly } from "../peers/plain-writes.js";
import { cpuSecondsOf } from "./process-cpu.js";

/** What one round over the cell link gives. */
export interface InFlightOutcome {
  sample: RoundSample;
  groups: Groups;
}

/**
 * The runners of a benchmark of durable messages beside plain writes, which repeat the groups of the last round over the cell link.
 * @param inUnit turns messages a second into the benchmark's unit
 */
export async function besidePlainWrites(
  directory: string,
  sizesBytes: readonly number[],
  measure: () => Promise<InFlightOutcome>,
  inUnit: (messages: number) => number = (messages) => messages,
): Promise<OpenBenchmark["runners"]> {
  // The peer's first round needs groups too.
  let { groups } = await measure();
  const converted = (sample: RoundSample): RoundSample => ({ ...sample, value: inUnit(sample.value) });
  return {
    "cell-link": async () => {
      const outcome = await measure();
      groups = outcome.groups;
      return converted(outcome.sample);
    },
    plain: async () => converted(await writePlainly(directory, groups, sizesBytes)),
  };
}

/**
 * Sends `count` messages, `inFlight` at a time, and times each from its send to its acknowledgement (closed loop).
 * `value` of the sample is messages a second.
 */
export async function sendInFlight(options: {
  count: number;
  inFlight: number;
  servicePid: number;
  send: (nth: number) => Promise<{ acknowledged: Promise<void> }>;
}): Promise<InFlightOutcome> {
  const { count, inFlight, servicePid, send } = options;
  const latency = new LatencyHistogram();
  const groups: Groups = [];
  let isGroupOpen = false;
  const onDurable = (): void => {
    if (!isGroupOpen) {
      groups.push(0);
      isGroupOpen = true;
      // If one chunk from the socket acknowledges several messages, all resolve before the event loop's next turn.
      setImmediate(() => {
        isGroupOpen = false;
      });
    }
    groups[groups.length - 1] = (groups.at(-1) as number) + 1;
  };
  const serviceCpuBefore = cpuSecondsOf(servicePid);
  const cpuBefore = process.cpuUsage();
  let sent = 0;
  const startMs = performance.now();
  const slot = async (): Promise<void> => {
    while (sent < count) {
      const sentMs = performance.now();
      const { acknowledged } = await send(sent++);
      await acknowledged;
      latency.record((performance.now() - sentMs) * 1e6);
      onDurable();
    }
  };
  await Promise.all(Array.from({ length: inFlight }, slot));
  const seconds = (performance.now() - startMs) / 1000;
  const cpu = process.cpuUsage(cpuBefore);
  return {
    groups,
    sample: {
      value: count / seconds,
      seconds,
      latency: latency.toData(),
      details: {
        "messages/commit": count / groups.length,
        "client CPU %": (cpu.user + cpu.system) / 1e4 / seconds,
        "service CPU us/message": ((cpuSecondsOf(servicePid) - serviceCpuBefore) * 1e6) / count,
      },
    },
  };
}
