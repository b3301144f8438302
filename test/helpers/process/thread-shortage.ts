import { Worker } from "node:worker_threads";
import type { Test } from "tap";

/** Node's own object for a thread. */
interface Handle {
  startThread(): void;
  onexit(exitCode: number, code: string, reason: string): void;
}

const INIT_FAILED = "ERR_WORKER_INIT_FAILED";

/** While `missing` is a code, no thread of this process can start: Node throws, as for EAGAIN, or the thread ends before it runs, as for EMFILE. */
export function shortOfThreads(t: Pick<Test, "teardown">) {
  const probe = new Worker("", { eval: true });
  const key = Object.getOwnPropertySymbols(probe).find(({ description }) => description === "kHandle");
  const prototype = Object.getPrototypeOf(Reflect.get(probe, key as symbol)) as Handle;
  const { startThread } = prototype;
  const short: { missing: string | null; isLate: boolean; refusals: number } = {
    missing: null,
    isLate: false,
    refusals: 0,
  };
  prototype.startThread = function (this: Handle) {
    const { missing, isLate } = short;
    if (missing === null) return startThread.call(this);
    short.refusals++;
    if (!isLate) throw Object.assign(new Error(missing), { code: INIT_FAILED });
    setImmediate(() => this.onexit(1, INIT_FAILED, missing));
  };
  t.teardown(() => {
    prototype.startThread = startThread;
  });
  return short;
}
