import { getPriority, setPriority } from "node:os";
import { basename } from "node:path";
import { linkTarget } from "../storage/disk/file-system.js";

/**
 * Lowers the priority of the calling thread alone. When cores are busy, threads that clients and producers wait for
 * then run first. On Linux setpriority(2) works on a single thread, given a thread's id. Elsewhere nothing is changed.
 *
 * @param nice 1 (hardly lower than others) to 19 (runs only when nobody else wants the core); it never raises the
 *   priority
 * @returns whether it was lowered
 */
export function lowerThreadPriority(nice: number): boolean {
  if (process.platform !== "linux") return false;
  try {
    const threadId = Number(basename(linkTarget("/proc/thread-self")));
    setPriority(threadId, Math.max(getPriority(threadId), nice));
    return true;
  } catch {
    // There is no /proc, or a sandbox forbids it. Everything still works, only without the priority.
    return false;
  }
}
