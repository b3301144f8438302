import { readFileSync } from "node:fs";
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
