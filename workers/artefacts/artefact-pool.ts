import type { TaskInput, TaskName, TaskOutput } from "./artefact-tasks.js";
import type { TaskAnswer, TaskErrorData, TaskMessage } from "./artefact-thread.js";
import { startThreads, type Threads } from "./piscina-threads.js";

/** Who waits for a task: a client now, or nobody in particular. */
export type TaskPriority = "client" | "background";

/** Why there is no result. */
export class TaskError extends Error {
  readonly code: string;

  constructor({ code, message }: TaskErrorData) {
    super(message);
    this.name = "TaskError";
    this.code = code;
  }
}

export interface ArtefactPoolOptions {
  /** Threads; see `poolSize`. */
  threads: number;
  /** Tasks that may wait, of each priority; more are refused with `queue_full`. */
  queueLimit: number;
  /** A task that takes longer is taken for stuck: its thread is ended. */
  taskTimeoutMs: number;
  /** Something went wrong that the caller is not told of: a thread was lost and its task goes again. */
  report(message: string, fields: Record<string, unknown>): void;
  /** For tests: a module in place of artefact-thread.js. */
  threadModule?: URL;
}

export interface RunOptions {
  priority: TaskPriority;
  /** Aborted when nobody wants the result any more: a task that waits is dropped, of one that runs the result. */
  signal?: AbortSignal;
}

interface QueuedTask {
  message: TaskMessage;
  attempts: number;
  isWanted: boolean;
  resolve(value: TaskOutput<TaskName>): void;
  reject(error: TaskError): void;
}

/** At least one core is left for the front and the recorder, and at least one thread works. */
export function poolSize(cores: number): number {
  return Math.max(1, cores - 1);
}

/**
 * Tasks for threads that run one each. Clients' tasks go before others. A thread that crashes or gets stuck is replaced, and its task goes
 * again once: a second time it fails, `worker_crashed` or `worker_stuck`.
 */
export class ArtefactPool {
  readonly #options: ArtefactPoolOptions;
  readonly #threads: Threads;
  readonly #queues: Record<TaskPriority, QueuedTask[]> = { client: [], background: [] };
  #running = 0;
  #isClosed = false;

  constructor(options: ArtefactPoolOptions) {
    this.#options = options;
    this.#threads = startThreads(
      options.threadModule ?? new URL("./artefact-thread.js", import.meta.url),
      options.threads,
    );
  }

  /** Tasks that wait or run. */
  get pending(): number {
    return this.#running + this.#queues.client.length + this.#queues.background.length;
  }

  /** @throws {TaskError} `queue_full`, `cancelled`, `closed`, `worker_crashed`, `worker_stuck`, or what the task itself said */
  run<N extends TaskName>(name: N, input: TaskInput<N>, { priority, signal }: RunOptions): Promise<TaskOutput<N>> {
    return new Promise((resolve, reject) => {
      const queue = this.#queues[priority];
      if (this.#isClosed) return reject(new TaskError({ code: "closed", message: "the service is ending" }));
      if (signal?.aborted) return reject(cancelled());
      if (queue.length >= this.#options.queueLimit) {
        return reject(new TaskError({ code: "queue_full", message: `${queue.length} tasks wait already` }));
      }
      const settle = (finish: () => void): void => {
        signal?.removeEventListener("abort", cancel);
        finish();
      };
      const task: QueuedTask = {
        message: { name, input },
        attempts: 0,
        isWanted: true,
        resolve: (value) => settle(() => resolve(value as TaskOutput<N>)),
        reject: (error) => settle(() => reject(error)),
      };
      const cancel = (): void => {
        const at = queue.indexOf(task);
        if (at >= 0) queue.splice(at, 1);
        task.isWanted = false;
        task.reject(cancelled());
      };
      signal?.addEventListener("abort", cancel, { once: true });
      queue.push(task);
      this.#startNext();
    });
  }

  /** Ends everything at once; tasks that wait or run are rejected with `closed`. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const queue of Object.values(this.#queues)) {
      for (const task of queue.splice(0))
        task.reject(new TaskError({ code: "closed", message: "the service is ending" }));
    }
    await this.#threads.destroy();
  }

  #startNext(): void {
    while (this.#running < this.#options.threads && !this.#isClosed) {
      const task = this.#queues.client.shift() ?? this.#queues.background.shift();
      if (task === undefined) return;
      this.#running++;
      void this.#execute(task).finally(() => {
        this.#running--;
        this.#startNext();
      });
    }
  }

  /** Never rejects. */
  async #execute(task: QueuedTask): Promise<void> {
    for (;;) {
      task.attempts++;
      const stuck = new AbortController();
      const timer = setTimeout(() => stuck.abort(), this.#options.taskTimeoutMs);
      try {
        const answer = (await this.#threads.run(task.message, stuck.signal)) as TaskAnswer;
        if ("error" in answer) task.reject(new TaskError(answer.error));
        else task.resolve(answer.value);
        return;
      } catch (error) {
        if (this.#isClosed) return task.reject(new TaskError({ code: "closed", message: "the service is ending" }));
        const failure = stuck.signal.aborted
          ? { code: "worker_stuck", message: `${task.message.name} took more than ${this.#options.taskTimeoutMs} ms` }
          : {
              code: "worker_crashed",
              message: `${task.message.name}: ${error instanceof Error ? error.message : error}`,
            };
        this.#options.report("a thread of the artefact pool was lost", {
          task: task.message.name,
          attempt: task.attempts,
          ...failure,
        });
        if (task.attempts > 1 || !task.isWanted) return task.reject(new TaskError(failure));
      } finally {
        clearTimeout(timer);
      }
    }
  }
}

function cancelled(): TaskError {
  return new TaskError({ code: "cancelled", message: "nobody waits for the result any more" });
}
