import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { TICKS_PER_SECOND } from "../harness/machine-cpu.js";

/** CPU seconds that a process has used so far, all threads, user and system; to 10 ms. */
export function cpuSecondsOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  // proc(5): fields 14 and 15 are utime and stime; field 2 may hold blanks and brackets.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** Resident memory of a process, in bytes. */
export function residentBytesOf(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(match?.[1]) * 1024;
}

const IDLE_WINDOW_MS = 150;
/** One after the other: a thread that waits for the disk uses none for a while. */
const IDLE_WINDOWS = 2;
/** A service that nobody asks anything does no more: timers, health, collections. */
const IDLE_SHARE = 0.1;
/** After a store of a million runs was opened, much may be put off. */
const IDLE_PATIENCE_MS = 120_000;

/**
 * Waits until a process does nothing to speak of: what it has put off until then is of its own time, not of what is measured
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
