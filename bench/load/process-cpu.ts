import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { TICKS_PER_SECOND } from "../harness/machine-cpu.js";

/** CPU seconds that a process has used so far, all threads, user and system; to 10 ms. */
export function cpuSecondsOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  // proc(5): fields 14 and 15 are utime and stime; field 2 may hold blanks and brackets.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** From now on, the most resident memory of a process is that since now, if the system can do that (proc(5), clear_refs). */
export function forgetMostResidentBytes(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, "5");
  } catch {
    // Then it is the most since the process started.
  }
}

/** Resident memory of a process, in bytes: now, and the most so far. */
export function residentBytesOf(pid: number): { now: number; most: number } {
  const text = readFileSync(`/proc/${pid}/status`, "utf8");
  const bytes = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(text)?.[1]) * 1024;
  return { now: bytes("VmRSS"), most: bytes("VmHWM") };
}

const IDLE_WINDOW_MS = 150;
/** How many idle windows must follow each other: a thread that waits for the disk uses no CPU time for a while. */
const IDLE_WINDOWS = 2;
/** A service without requests uses no more than this: for timers, health, garbage collections. */
const IDLE_SHARE = 0.1;
/** After a service has opened a store of a million runs, it may have much work left. */
const IDLE_PATIENCE_MS = 120_000;

/**
 * Waits until a process is nearly idle, so that work which it has put off does not count in the next measurement. It does not wait
 * for work that a timer starts minutes later.
 * @throws {Error} if the process does not become idle
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
