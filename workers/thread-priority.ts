import { getPriority, setPriority } from "node:os";
import { basename } from "node:path";
import { linkTarget } from "../storage/disk/file-system.js";

/**
 * Lowers the priority of the calling thread alone, so that where cores are short the threads that clients and producers wait for go first.
 * On Linux setpriority(2) means a thread by a thread's id, against POSIX, which is what makes this possible; elsewhere nothing is changed.
 *
 * @param nice 1 (hardly less than others) to 19 (only what nobody else wants); never higher than it is already
 * @returns whether it was lowered
 */
export function lowerThreadPriority(nice: number): boolean {
  if (process.platform !== "linux") return false;
  try {
    const threadId = Number(basename(linkTarget("/proc/thread-self")));
    setPriority(threadId, Math.max(getPriority(threadId), nice));
    return true;
  } catch {
    // Without /proc, or where a sandbox forbids it: everything works as before, only with equal turns.
    return false;
  }
}
