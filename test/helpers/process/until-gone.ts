import { setTimeout as pause } from "node:timers/promises";

/** Resolves when no process has this id any more. */
export async function untilGone(pid: number): Promise<void> {
  while (!isGone(pid)) await pause(5);
}

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}
