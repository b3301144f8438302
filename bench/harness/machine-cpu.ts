import { readFileSync } from "node:fs";

/** USER_HZ: the unit of the times in /proc, 100 on every Linux architecture that Node runs on. */
export const TICKS_PER_SECOND = 100;

/** CPU time of the whole machine since its start, all cores together, in seconds. */
export interface MachineCpu {
  busy: number;
  /** The part of `busy` in which a virtual machine's cores had work, but its host gave their time to others, or had limited it. */
  stolen: number;
  all: number;
}

/** Reads the line `cpu` of /proc/stat (proc(5)), to 10 ms a core. All are 0 if the system has no such file. */
export function machineCpuSeconds(): MachineCpu {
  let text: string;
  try {
    text = readFileSync("/proc/stat", "utf8");
  } catch {
    return { busy: 0, stolen: 0, all: 0 };
  }
  const [first = ""] = text.split("\n");
  const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0] = first
    .split(/\s+/)
    .slice(1)
    .map(Number);
  const busy = (user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND;
  return { busy, stolen: steal / TICKS_PER_SECOND, all: busy + (idle + iowait) / TICKS_PER_SECOND };
}

/** The share of all cores' time that the host took between the two. */
export function stolenShare(before: MachineCpu, after: MachineCpu): number {
  const all = after.all - before.all;
  return all > 0 ? (after.stolen - before.stolen) / all : 0;
}
