import type { RoundSample } from "../harness/benchmark.js";
import { LatencyHistogram } from "../harness/latency-histogram.js";
import { cpuSecondsOf } from "./process-cpu.js";

/** The sizes of the groups that became durable together, in order. A group is what one read from the socket acknowledges. */
export type Groups = number[];

/**
 * Sends `count` messages, `inFlight` at a time, and times each from its send to its acknowledgement (closed loop).
 * `value` of the sample is messages a second.
 */
export async function sendInFlight(options: {
  count: number;
  inFlight: number;
  servicePid: number;
  send: (nth: number) => Promise<{ acknowledged: Promise<void> }>;
}): Promise<{ sample: RoundSample; groups: Groups }> {
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
