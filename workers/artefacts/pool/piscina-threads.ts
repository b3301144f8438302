/** The only file that uses Piscina: threads that run one task each, and answers that move between threads instead of being copied. */
import { parentPort } from "node:worker_threads";
import { Piscina } from "piscina";

export interface ThreadRun {
  /** Aborting it ends the thread that has the task. A new thread replaces it. */
  signal: AbortSignal;
  /** Called when a thread has begun the task. The time before was needed to start a thread. */
  onBegun(): void;
  /** Memory of the message that the thread takes over. */
  transfer?: ArrayBuffer[];
}

export interface Threads {
  /** Runs a task. Rejects when its thread has crashed or was ended by the signal. */
  run(message: unknown, options: ThreadRun): Promise<unknown>;
  /** Ends all threads at once. */
  destroy(): Promise<void>;
}

/** A task as it goes to a thread, with the number that the thread answers when it begins. */
export interface NumberedTask {
  number: number;
  message: unknown;
}

interface Begun {
  begun: number;
}

/**
 * Threads of a module whose default export is a `threadTask`. They are started when tasks come, and stay.
 *
 * @param onStrayError called for an error of a thread that has no task, for example one that an earlier task has caused
 */
export function startThreads(moduleUrl: URL, count: number, onStrayError: (error: Error) => void): Threads {
  const piscina = new Piscina({
    filename: moduleUrl.href,
    minThreads: 0,
    maxThreads: count,
    idleTimeout: Number.POSITIVE_INFINITY,
    concurrentTasksPerWorker: 1,
    // Without the process's options: a thread that computes needs no loaders, such as those that instrument a test.
    execArgv: [],
    // A thread that waits on shared memory would answer sooner, but would take no other messages meanwhile and close no files.
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

/** The default export of a thread's module. */
export function threadTask<M, A>(run: (message: M) => Promise<A>): (task: NumberedTask) => Promise<A> {
  return ({ number, message }) => {
    parentPort?.postMessage({ begun: number } satisfies Begun);
    return run(message as M);
  };
}

/** A task's answer, whose buffers move to the other thread. */
export function moved<T extends object>(value: T, buffers: ArrayBuffer[]): T {
  const transferable = { [Piscina.transferableSymbol]: buffers, [Piscina.valueSymbol]: value };
  return Piscina.move(transferable as unknown as Parameters<typeof Piscina.move>[0]) as unknown as T;
}
