import { getHeapStatistics, setFlagsFromString } from "node:v8";

/** The largest growth that V8 itself chooses: a full collection when a heap is four times as large as after the last one. */
const GROWTH_PERCENT = 300;
/** Below this heap limit memory is scarce, and V8's own, smaller growth is kept. */
const LEAST_LIMIT_BYTES = 2 * 1024 ** 3;

/** Options with which a command line decides by itself how large heaps may become. */
const SETTLED_BY = new Set([
  "heap-growing-percent",
  "initial-heap-size",
  "initial-old-space-size",
  "max-heap-size",
  "max-old-space-size",
  "max-semi-space-size",
  "min-semi-space-size",
  "semi-space-growth-factor",
  "optimize-for-size",
  "lite-mode",
]);

/**
 * Lets the heaps of all threads always grow by the largest factor before a full collection.
 *
 * V8 chooses the factor at each full collection (`MemoryController` in V8's src/heap/heap-controller.cc). It chooses a
 * small one after a process was idle. Then a burst of deliveries or captures causes a full collection every second or
 * more often. Each takes 5 to 15 ms on busy cores, and the front answers nobody meanwhile. Call this before threads are
 * started: a running thread uses the new factor only after its next full collection.
 *
 * @returns false if nothing was set: the command line decides, or memory is scarce
 */
export function letHeapsGrow(): boolean {
  const options = [...process.execArgv, process.env.NODE_OPTIONS ?? ""].join(" ");
  for (const [, name = ""] of options.matchAll(/--(?:no[-_])?([a-z_-]+)/g)) {
    if (SETTLED_BY.has(name.replaceAll("_", "-"))) return false;
  }
  if (getHeapStatistics().heap_size_limit < LEAST_LIMIT_BYTES) return false;
  setFlagsFromString(`--heap-growing-percent=${GROWTH_PERCENT}`);
  return true;
}
