import { getHeapStatistics, setFlagsFromString } from "node:v8";

/** The largest factor that V8 itself chooses where memory is not scarce: a full collection when a heap is four times what the last one left. */
const GROWTH_PERCENT = 300;
/** With a lower limit V8 has heaps grow by less, as is meet where there is little memory. */
const LEAST_LIMIT_BYTES = 2 * 1024 ** 3;

/** Whoever names one of these has settled how large heaps may become. */
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
 * Lets the heaps of all threads grow by the largest factor that V8 itself chooses before they are collected in full, always. V8 chooses it anew with
 * every full collection (`MemoryController` in V8's src/heap/heap-controller.cc), and for a process that was idle before a small one: so a
 * burst of deliveries or of captures is answered by a full collection every second and more often, of 5 to 15 ms each on busy
 * cores, in which the front answers nobody. Before threads are started; for those that run it holds after their next full collection.
 *
 * @returns whether it was set: not where the command line settles how large heaps may become, or memory is scarce
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
