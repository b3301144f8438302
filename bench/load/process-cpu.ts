import { readFileSync } from "node:fs";

/** USER_HZ: the unit of the times in /proc, 100 on every Linux architecture that Node runs on. */
const TICKS_PER_SECOND = 100;

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

/** CPU time of the whole machine so far, all cores, in seconds: proc(5), /proc/stat, line `cpu`; stolen time counts as busy. */
export function machineCpuSeconds(): { busy: number; all: number } {
  const [first = ""] = readFileSync("/proc/stat", "utf8").split("\n");
  const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0] = first
    .split(/\s+/)
    .slice(1)
    .map(Number);
  const busy = (user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND;
  return { busy, all: busy + (idle + iowait) / TICKS_PER_SECOND };
}
