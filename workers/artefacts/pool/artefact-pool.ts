import { SYSTEM_TIMERS, type Timers } from "../../../core/timers.js";
import type { TaskInput, TaskName, TaskOutput } from "./artefact-tasks.js";
import type { TaskAnswer, TaskMessage } from "./artefact-thread.js";
import { NoThreadError, startThreads, type Threads } from "./piscina-threads.js";
import { NO_THREAD, type TaskErrorData } from "./task-failures.js";

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

/** How a task that had a thread ended. */
export interface TaskOutcome {
  task: TaskMessage;
  priority: TaskPriority;
  /** Undefined if it succeeded, even if nobody waited for it any more. */
  error: TaskErrorData | undefined;
  /** Time since a thread took it, including a second attempt if a thread was lost. */
  durationMs: number;
}

export interface ArtefactPoolOptions {
  /**
   * Threads that each priority may have at a time; see `poolSize`. There is one more in all, so that neither priority
   * waits for the other.
   */
  threads: number;
  /** Most tasks of each priority that may wait. More are refused with `queue_full`. */
  queueLimit: number;
  /** A task that takes longer, once a thread has begun it, counts as stuck: its thread is ended. */
  taskTimeoutMs(task: TaskMessage): number;
  /** Called when a thread was lost, which no caller sees: its task, if it had one, is tried again. */
  report(message: string, fields: Record<string, unknown>): void;
  /** Called for every task that had a thread, when it has ended, unless the pool is closing. */
  onOutcome?(outcome: TaskOutcome): void;
  /** For tests: a module that replaces artefact-thread.js. */
  threadModule?: URL;
  /** For tests. */
  timers?: Timers;
}

export interface RunOptions {
  priority: TaskPriority;
  /** Aborted when nobody wants the result any more. A waiting task is dropped; the result of a running one is. */
  signal?: AbortSignal;
  /** The task continues accepted work: a full queue does not refuse it. */
  isContinued?: boolean;
  /** Memory that the task may use for its answer. It is gone for the caller when a thread has taken the task. */
  room?: ArrayBuffer | undefined;
}

/** A thread that takes longer to start is lost. It usually takes a fraction of a second, or some seconds on a busy machine. */
const THREAD_START_MS = 60_000;

interface QueuedTask {
  message: TaskMessage;
  priority: TaskPriority;
  isAborted: boolean;
  resolve(value: TaskOutput<TaskName>): void;
  reject(error: TaskError): void;
}

/**
 * A thread takes about six descriptors. With one thread per this many descriptors, all threads together take at most a
 * fifth.
 */
const DESCRIPTORS_PER_THREAD = 32;

/**
 * How many threads to start. At least one, and one less than there are cores: that core is left for the front and the
 * recorder.
 *
 * @param descriptors the process's limit of open descriptors; null: unknown
 */
export function poolSize(cores: number, descriptors: number | null): number {
  const most = descriptors === null ? cores : Math.floor(descriptors / DESCRIPTORS_PER_THREAD);
  return Math.max(1, Math.min(cores - 1, most));
}

/**
 * Runs tasks on threads, one task for each thread. Tasks of clients go first. A background task may take minutes, so
 * background tasks never have the last thread: a client gets one at once. Clients never have the last one either, so
 * that the background goes on however many clients wait. The system shares the cores among the threads.
 *
 * A thread that crashes or gets stuck is replaced, and its task is tried once more. If that fails too, the task fails
 * with `worker_crashed` or `worker_stuck`, or with `no_thread` if no thread has begun it. If no thread could start for
 * a task, it waits for the thread of another task of its priority, if one runs.
 */
export class ArtefactPool {
  readonly #options: ArtefactPoolOptions;
  readonly #timers: Timers;
  readonly #threads: Threads;
  readonly #queues: Record<TaskPriority, QueuedTask[]> = { client: [], background: [] };
  readonly #running: Record<TaskPriority, number> = { client: 0, background: 0 };
  /** No thread has begun a task since one could not be started. */
  #lacksThreads = false;
  #isClosed = false;

  constructor(options: ArtefactPoolOptions) {
    this.#options = options;
    this.#timers = options.timers ?? SYSTEM_TIMERS;
    this.#threads = startThreads(options.threadModule ?? new URL("./artefact-thread.js", import.meta.url), (error) =>
      options.report("a thread of the artefact pool failed without a task", { message: error.message }),
    );
  }

  /** Tasks that threads have. */
  get running(): number {
    return this.#running.client + this.#running.background;
  }

  /** Tasks that wait for a thread. */
  waiting(priority: TaskPriority): number {
    return this.#queues[priority].length;
  }

  /** @throws {TaskError} `queue_full`, `cancelled`, `closed`, `no_thread`, `worker_crashed`, `worker_stuck`, or the task's own code */
  run<N extends TaskName>(name: N, input: TaskInput<N>, options: RunOptions): Promise<TaskOutput<N>> {
    const { priority, signal, isContinued = false, room } = options;
    return new Promise((resolve, reject) => {
      const queue = this.#queues[priority];
      if (this.#isClosed) return reject(new TaskError(CLOSED));
      if (signal?.aborted) return reject(cancelled());
      if (queue.length >= this.#options.queueLimit && !isContinued) {
        return reject(new TaskError({ code: "queue_full", message: `${queue.length} tasks wait already` }));
      }
      const settle = (finish: () => void): void => {
        signal?.removeEventListener("abort", cancel);
        finish();
      };
      const task: QueuedTask = {
        message: { name, input, ...(room && { room }) },
        priority,
        isAborted: false,
        resolve: (value) => settle(() => resolve(value as TaskOutput<N>)),
        reject: (error) => settle(() => reject(error)),
      };
      const cancel = (): void => {
        const at = queue.indexOf(task);
        if (at >= 0) queue.splice(at, 1);
        task.isAborted = true;
        task.reject(cancelled());
      };
      signal?.addEventListener("abort", cancel, { once: true });
      queue.push(task);
      this.#startNext();
    });
  }

  /** Ends everything at once. Tasks that wait or run are rejected with `closed`. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const queue of Object.values(this.#queues)) {
      for (const task of queue.splice(0)) task.reject(new TaskError(CLOSED));
    }
    await this.#threads.destroy();
  }

  #startNext(): void {
    while (!this.#isClosed) {
      const task = this.#takeNext("client") ?? this.#takeNext("background");
      if (task === undefined) return;
      this.#running[task.priority]++;
      void this.#execute(task).then((hasEnded) => {
        if (!hasEnded) return;
        this.#running[task.priority]--;
        this.#startNext();
      });
    }
  }

  #takeNext(priority: TaskPriority): QueuedTask | undefined {
    const { threads } = this.#options;
    const hasThread = this.running <= threads && this.#running[priority] < threads;
    return hasThread ? this.#queues[priority].shift() : undefined;
  }

  /** Never rejects. False: no thread could start for it. It waits again until another task that runs has ended. */
  async #execute(task: QueuedTask): Promise<boolean> {
    const { message, priority } = task;
    const startedMs = performance.now();
    let answer: TaskAnswer | undefined;
    for (let attempt = 1; answer === undefined; attempt++) {
      const ended = await this.#attempt(message);
      if (this.#isClosed) {
        task.reject(new TaskError(CLOSED));
        return true;
      }
      if (!("lost" in ended)) answer = ended;
      else {
        this.#reportLost(ended.lost, message.name, attempt);
        if (attempt > 1 || task.isAborted) answer = { error: ended.lost };
        else if (ended.lost.code === NO_THREAD && this.#running[priority] > 1) {
          // This happens at once: if two fail together, the second must not wait for the first.
          this.#running[priority]--;
          this.#queues[priority].unshift(task);
          return false;
        }
      }
    }
    const error = "error" in answer ? answer.error : undefined;
    const durationMs = performance.now() - startedMs;
    this.#options.onOutcome?.({ task: message, priority, error, durationMs });
    if ("error" in answer) task.reject(new TaskError(answer.error));
    else task.resolve(answer.value);
    return true;
  }

  /** Logs one line while no thread can be started, however many tasks ask for one. */
  #reportLost(lost: TaskErrorData, task: TaskName, attempt: number): void {
    const isTold = this.#lacksThreads && lost.code === NO_THREAD;
    if (!isTold) this.#options.report("a thread of the artefact pool was lost", { task, attempt, ...lost });
    if (lost.code === NO_THREAD) this.#lacksThreads = true;
  }

  /** Never rejects. */
  async #attempt(message: TaskMessage): Promise<TaskAnswer | { lost: TaskErrorData }> {
    const taskTimeoutMs = this.#options.taskTimeoutMs(message);
    // A second attempt has none: the first one took it.
    const { room } = message;
    delete message.room;
    const ended = new AbortController();
    let timer = this.#timers.set(() => ended.abort(), THREAD_START_MS);
    const onBegun = (): void => {
      this.#lacksThreads = false;
      this.#timers.clear(timer);
      timer = this.#timers.set(() => ended.abort(), taskTimeoutMs);
    };
    try {
      return (await this.#threads.run(room ? { ...message, room } : message, {
        ...{ signal: ended.signal, onBegun, transfer: room ? [room] : [] },
      })) as TaskAnswer;
    } catch (error) {
      if (error instanceof NoThreadError) {
        const reason = ended.signal.aborted ? `within ${THREAD_START_MS} ms` : `(${messageOf(error)})`;
        return { lost: { code: NO_THREAD, message: `${message.name}: no thread began it ${reason}` } };
      }
      if (ended.signal.aborted) {
        return { lost: { code: "worker_stuck", message: `${message.name}: it took more than ${taskTimeoutMs} ms` } };
      }
      return { lost: { code: "worker_crashed", message: `${message.name}: ${messageOf(error)}` } };
    } finally {
      this.#timers.clear(timer);
    }
  }
}

const CLOSED: TaskErrorData = { code: "closed", message: "the service is ending" };

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function cancelled(): TaskError {
  return new TaskError({ code: "cancelled", message: "nobody waits for the result any more" });
}
