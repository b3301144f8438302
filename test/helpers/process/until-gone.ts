import { until } from "../until.js";

/** Resolves when no process has this id any more. */
export async function untilGone(pid: number): Promise<void> {
  await until(`the end of process ${pid}`, () => isGone(pid));
}

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}
