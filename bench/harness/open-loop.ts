import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import type { LatencyHistogram } from "./latency-histogram.js";

/** Nobody notifies it: what waits for it waits out its time. */
const NEVER = new Int32Array(new SharedArrayBuffer(4));

/**
 * Sends at a fixed rate, whatever the answers do, and times each answer from the instant it was *meant* to be sent. A
 * closed loop would wait for a slow answer and so leave out the requests that would have been slow too (coordinated omission, Gil
 * Tene). When the sender itself falls behind, the delay is counted in the latency and told in `lateSends`.
 */
export async function runOpenLoop(options: {
  ratePerSecond: number;
  count: number;
  /** Sends the `index`-th, meant for `intendedMs` (performance.now()); the promise resolves with its answer. */
  send: (index: number, intendedMs: number) => Promise<unknown>;
  latency: LatencyHistogram;
}): Promise<{ seconds: number; lateSends: number }> {
  const { ratePerSecond, count, send, latency } = options;
  const intervalMs = 1000 / ratePerSecond;
  const answers: Promise<void>[] = [];
  let lateSends = 0;
  let open = 0;
  const startMs = performance.now();
  for (let index = 0; index < count; index++) {
    const intendedMs = startMs + index * intervalMs;
    // Node's timers know whole milliseconds only, and early would flatter the latency.
    const waitMs = Math.floor(intendedMs - performance.now()) - 1;
    if (waitMs > 0) await sleep(waitMs);
    // The last one is slept out where no answer could come meanwhile: turn by turn it would take a third of a core from what it measures.
    for (let leftMs = intendedMs - performance.now(); leftMs > 0; leftMs = intendedMs - performance.now()) {
      if (open === 0) Atomics.wait(NEVER, 0, 0, leftMs);
      else await nextTurn();
    }
    // More than that is not the timer's doing but the sender's, or the machine's.
    if (performance.now() - intendedMs > 2) lateSends++;
    open++;
    const answer = send(index, intendedMs).then(() => {
      open--;
      latency.record((performance.now() - intendedMs) * 1e6);
    });
    // Told at the end: until then nobody waits for it.
    answer.catch(() => {});
    answers.push(answer);
  }
  await Promise.all(answers);
  return { seconds: (performance.now() - startMs) / 1000, lateSends };
}
