/** The only file that knows Piscina: threads that run one task each, and answers that are moved between threads instead of copied. */
import { parentPort } from "node:worker_threads";
import { Piscina } from "piscina";

export interface ThreadRun {
  /** Aborted: the thread that has the task is ended; there will be a new one. */
  signal: AbortSignal;
  /** A thread has begun: what passed before, it took to start one. */
  onBegun(): void;
  /** Memory of the message that the thread takes over. */
  transfer?: ArrayBuffer[];
}

export interface Threads {
  /** Runs a task; rejects when its thread crashed, or was ended by the signal. */
  run(message: unknown, options: ThreadRun): Promise<unknown>;
  /** Ends all threads at once. */
  destroy(): Promise<void>;
}

/** A task as it goes to a thread, and what the thread says when it begins it. */
export interface NumberedTask {
  number: number;
  message: unknown;
}

interface Begun {
  begun: number;
}

/**
 * Threads of a module whose default export is a `threadTask`. They start as tasks come, and stay.
 *
 * @param onStrayError told of an error of a thread that has no task: what a task left behind, say
 */
export function startThreads(moduleUrl: URL, count: number, onStrayError: (error: Error) => void): Threads {
  const piscina = new Piscina({
    filename: moduleUrl.href,
    minThreads: 0,
    maxThreads: count,
    idleTimeout: Number.POSITIVE_INFINITY,
    concurrentTasksPerWorker: 1,
    // Of the process: loaders that instrument a test, say, are none of a thread that computes.
    execArgv: [],
    // A thread that waits on memory answers sooner, and takes messages of no one else meanwhile, nor closes files.
    atomics: "disabled",
  });
  let lastNumber = 0;
  const waiting = new Map<number, () => void>();
  piscina.on("message", ({ begun }: Begun) => waiting.get(begun)?.());
  // An error event that nobody listens to would end the process.
  piscina.on("error", onStrayError);
  return {
    async run(message, { signal, onBegun, transfer = [] }) {
      const number = ++lastNumber;
      waiting.set(number, onBegun);
      try {
        return await piscina.run({ number, message } satisfies NumberedTask, { signal, transferList: transfer });
      } finally {
        waiting.delete(number);
      }
    },
    destroy: () => piscina.destroy(),
  };
}

/** What a module of threads exports as its default. */
export function threadTask<M, A>(run: (message: M) => Promise<A>): (task: NumberedTask) => Promise<A> {
  return ({ number, message }) => {
    parentPort?.postMessage({ begun: number } satisfies Begun);
    return run(message as M);
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
