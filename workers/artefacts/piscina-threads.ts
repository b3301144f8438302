/** The only file that knows Piscina: threads that run one task each, and answers that are moved between threads instead of copied. */
import { Piscina } from "piscina";

export interface Threads {
  /** Runs a task; rejects when its thread crashed, or `signal` was aborted, which ends the thread. Either way there is a new thread then. */
  run(message: unknown, signal: AbortSignal): Promise<unknown>;
  /** Ends all threads at once. */
  destroy(): Promise<void>;
}

/** Threads of a module whose default export takes a message and gives the answer. */
export function startThreads(moduleUrl: URL, count: number): Threads {
  const piscina = new Piscina({
    filename: moduleUrl.href,
    minThreads: count,
    maxThreads: count,
    concurrentTasksPerWorker: 1,
    // Of the process: loaders that instrument a test, say, are none of a thread that computes.
    execArgv: [],
    // A thread that waits on memory answers sooner, and takes messages of no one else meanwhile, nor closes files.
    atomics: "disabled",
  });
  return {
    run: (message, signal) => piscina.run(message, { signal }),
    destroy: () => piscina.destroy(),
  };
}

/** What a task answers, its buffers moved to the other thread. */
export function moved<T extends object>(value: T, buffers: ArrayBuffer[]): T {
  const transferable = {
    [Piscina.transferableSymbol]: buffers,
    [Piscina.valueSymbol]: value,
  };
  return Piscina.move(transferable as unknown as Parameters<typeof Piscina.move>[0]) as unknown as T;
}
