/** Lowers its priority by `workerData.nice` and tells the nice value that the system has for this thread and for the main one. */
import { readFileSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { lowerThreadPriority } from "../../workers/thread-priority.js";

/** The 19th field of proc(5)'s stat; the name before it may hold blanks. */
function niceOf(path: string): number {
  const stat = readFileSync(path, "utf8");
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[16]);
}

const isLowered = lowerThreadPriority((workerData as { nice: number }).nice);
parentPort?.postMessage({
  isLowered,
  own: niceOf("/proc/thread-self/stat"),
  main: niceOf(`/proc/self/task/${process.pid}/stat`),
});
