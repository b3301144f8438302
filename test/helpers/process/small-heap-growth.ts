/**
 * Loaded before a program (`--import`): has V8 choose a small factor for the growth of heaps, as it does after some idling, collect the main
 * thread's in full over and over, and print the limit that it sets each time.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { isMainThread } from "node:worker_threads";

if (isMainThread) {
  setFlagsFromString("--heap-growing-percent=30");
  setFlagsFromString("--trace-gc-verbose");
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  collect();
  setInterval(collect, 100).unref();
}
