import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { TICKS_PER_SECOND } from "../harness/machine-cpu.js";

/** proc(5), /proc/[pid]/stat: fields 14 to 17 are utime, stime, cutime, cstime; field 2 may hold blanks and brackets. */
function statTicks(pid: number | "self"): number[] {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return fields.slice(11, 15).map(Number);
}

/** CPU seconds that a process has used so far, all threads, user and system; to 10 ms. */
export function cpuSecondsOf(pid: number): number {
  const [user = 0, system = 0] = statTicks(pid);
  return (user + system) / TICKS_PER_SECOND;
}

/** CPU seconds of all children of this process that have ended so far. */
export function cpuSecondsOfEndedChildren(): number {
  const [, , user = 0, system = 0] = statTicks("self");
  return (user + system) / TICKS_PER_SECOND;
}

const IDLE_WINDOW_MS = 150;
/** One after the other: a thread that waits for the disk uses none for a while. */
const IDLE_WINDOWS = 2;
/** A service that nobody asks anything does no more: timers, health, collections. */
const IDLE_SHARE = 0.1;
const IDLE_PATIENCE_MS = 20_000;

/**
 * Waits until a process does nothing to speak of: what it has put off until then (a snapshot, say) is of its own time, not of what is measured
 * next. What is due by a clock minutes later is not waited for.
 * @throws {Error} when it comes to no rest
 */
export async function untilIdle(pid: number): Promise<void> {
  const endMs = performance.now() + IDLE_PATIENCE_MS;
  for (let before = cpuSecondsOf(pid), idle = 0; ; ) {
    await sleep(IDLE_WINDOW_MS);
    const now = cpuSecondsOf(pid);
    idle = now - before <= (IDLE_SHARE * IDLE_WINDOW_MS) / 1000 ? idle + 1 : 0;
    if (idle === IDLE_WINDOWS) return;
    before = now;
    if (performance.now() > endMs)
      throw new Error(`process ${pid} came to no rest within ${IDLE_PATIENCE_MS / 1000} s`);
  }
}
