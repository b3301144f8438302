/** The only file that uses Piscina: threads that run one task each, and answers that move between threads instead of being copied. */
import { parentPort } from "node:worker_threads";
import { Piscina } from "piscina";

export interface ThreadRun {
  /** Aborting it ends the thread that has the task. A new thread replaces it. */
  signal: AbortSignal;
  /** Called when a thread has begun the task. The time before was needed to start a thread. */
  onBegun?(): void;
  /** Memory of the message that the thread takes over. */
  transfer?: ArrayBuffer[];
}

export interface Threads {
  /**
   * Runs a task on a thread that has none, or on a new one. Rejects when its thread has crashed or was ended by the signal.
   * @throws {NoThreadError} at once when none can be started
   */
  run(message: unknown, options: ThreadRun): Promise<unknown>;
  /** Ends all threads at once. */
  destroy(): Promise<void>;
}

/** A task as it goes to a thread, with the number that the thread tells when it begins. */
export interface NumberedTask {
  number: number;
  message: unknown;
}

/** No thread has begun the task. It can be tried again: perhaps the process or the machine lacked something for a thread. */
export class NoThreadError extends Error {
  readonly code = "no_thread";
}

/**
 * Threads of a module whose default export is a `threadTask`. There are as many as the most tasks that ran at
 * one time, and they stay.
 *
 * @param onStrayError called for an error of a thread that has no task, for example one that an earlier task has caused
 */
export function startThreads(moduleUrl: URL, onStrayError: (error: Error) => void): Threads {
  /**
   * Each is a Piscina of one thread. A Piscina of several threads would keep a task whose thread cannot be started in
   * its queue, and tell nobody.
   */
  const threads = new Set<Piscina>();
  const idle = new Set<Piscina>();
  let lastNumber = 0;
  const start = (): Piscina => {
    const thread = new Piscina({
      filename: moduleUrl.href,
      // It starts now, and a task is its own from the start.
      minThreads: 1,
      maxThreads: 1,
      idleTimeout: Number.POSITIVE_INFINITY,
      concurrentTasksPerWorker: 1,
      // Without the process's options: a thread that computes needs no loaders, such as those that instrument a test. Piscina would load the
      // module by `require`, and Node 20 aborts the whole process if that is under way when the service stops. So it takes `import`.
      execArgv: ["--no-experimental-require-module"],
      // A thread that waits on shared memory would answer sooner, but would take no other messages meanwhile and close no files.
      atomics: "disabled",
    });
    // Piscina would start another thread when this one is lost, where nobody can catch that there is none.
    thread.options.minThreads = 0;
    // An error event that nobody listens to would end the process.
    thread.on("error", onStrayError);
    thread.on("workerDestroy", () => {
      threads.delete(thread);
      idle.delete(thread);
    });
    threads.add(thread);
    return thread;
  };
  return {
    async run(message, { signal, onBegun, transfer = [] }) {
      const number = ++lastNumber;
      let hasBegun = false;
      const begin = (begun: number): void => {
        // The word of the task before can come after its answer, which has a channel of its own.
        if (begun !== number) return;
        hasBegun = true;
        onBegun?.();
      };
      let thread: Piscina | undefined;
      try {
        // The one that became idle last: threads keep what they have read, and the next task often needs the same.
        thread = [...idle].at(-1) ?? start();
        idle.delete(thread);
        thread.on("message", begin);
        return await thread.run({ number, message } satisfies NumberedTask, { signal, transferList: transfer });
      } catch (error) {
        if (hasBegun) throw error;
        throw new NoThreadError(`no thread could start: ${(error as Error).message}`);
      } finally {
        thread?.off("message", begin);
        if (thread !== undefined && threads.has(thread)) idle.add(thread);
      }
    },
    async destroy() {
      await Promise.all([...threads].map((thread) => thread.destroy()));
    },
  };
}

/** The default export of a thread's module: it tells when a task begins. */
export function threadTask<M, A>(run: (message: M) => Promise<A>): (task: NumberedTask) => Promise<A> {
  return ({ number, message }) => {
    parentPort?.postMessage(number);
    return run(message as M);
  };
}

/** A task's answer, whose buffers move to the other thread. */
export function moved<T extends object>(value: T, buffers: ArrayBuffer[]): T {
  const transferable = { [Piscina.transferableSymbol]: buffers, [Piscina.valueSymbol]: value };
  return Piscina.move(transferable as unknown as Parameters<typeof Piscina.move>[0]) as unknown as T;
}
