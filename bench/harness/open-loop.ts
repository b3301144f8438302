import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import type { LatencyHistogram } from "./latency-histogram.js";

/** Nobody ever notifies it: a wait for it always lasts its whole time. */
const NEVER = new Int32Array(new SharedArrayBuffer(4));

/**
 * Sends at a fixed rate, whatever the answers do, and times each answer from the instant it was *meant* to be sent. A
 * closed loop would wait for a slow answer and so leave out the requests that would have been slow too (coordinated omission, Gil
 * Tene). When the sender itself falls behind, the latency includes the delay, and `lateSends` counts it.
 */
export async function runOpenLoop(options: {
  ratePerSecond: number;
  count: number;
  /** Sends the request of this index, which is meant for `intendedMs` (performance.now()). Resolves with its answer. */
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
    // Node's timers have whole milliseconds only, and sending too early would make the latency look better.
    const waitMs = Math.floor(intendedMs - performance.now()) - 1;
    if (waitMs > 0) await sleep(waitMs);
    // If no answer is due, it sleeps through the last millisecond: waiting turn by turn would take a third of a core from the service.
    for (let leftMs = intendedMs - performance.now(); leftMs > 0; leftMs = intendedMs - performance.now()) {
      if (open === 0) Atomics.wait(NEVER, 0, 0, leftMs);
      else await nextTurn();
    }
    // A longer delay does not come from the timer but from the sender or the machine.
    if (performance.now() - intendedMs > 2) lateSends++;
    open++;
    const answer = send(index, intendedMs).then(() => {
      open--;
      latency.record((performance.now() - intendedMs) * 1e6);
    });
    // A failure is reported at the end. Until then nobody waits for the answer.
    answer.catch(() => {});
    answers.push(answer);
  }
  await Promise.all(answers);
  return { seconds: (performance.now() - startMs) / 1000, lateSends };
}
