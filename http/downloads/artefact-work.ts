import { countDuration, createDurationCounts, type DurationCounts } from "../../core/duration-counts.js";
import type { ComponentRow } from "../../core/health.js";
import { ServiceError } from "../../core/service-errors.js";
import type { Timers } from "../../core/timers.js";
import { formatTimeUs } from "../../core/timestamps.js";
import { StorageError } from "../../storage/storage-error.js";
import {
  ArtefactPool,
  type ArtefactPoolOptions,
  TaskError,
  type TaskOutcome,
} from "../../workers/artefacts/pool/artefact-pool.js";
import type { TaskName } from "../../workers/artefacts/pool/artefact-tasks.js";
import type { TaskAnswer, TaskMessage } from "../../workers/artefacts/pool/artefact-thread.js";
import {
  NO_THREAD,
  OUT_OF_MEMORY,
  RESOURCE_SHORTAGE,
  taskFailure,
} from "../../workers/artefacts/pool/task-failures.js";
import type { MakeArtefact } from "./generated-files.js";

/** Most clients that may wait for a first piece: at a piece or two every few milliseconds, the last one waits about a second. */
const WAITING_CLIENTS = 256;

/** When a client beyond that limit may ask again. */
const RETRY_AFTER_SECONDS = 1;

/** Time limit for the first bytes, which come after the reply and so are not covered by the pipeline's deadline. */
const FIRST_PIECE_MS = 25_000;

/** Time limit of a task. Any task except the filter reads at most some gigabytes once. */
const TASK_MS = 120_000;
/** Further time for the filter for each point: 20 times its usual time, which is enough for pure noise on a slow core. */
const FILTERED_POSITION_MS = 0.1;

/**
 * Time limit of a task that reads the whole log: where findings files cannot be kept, it decodes each run's document, and a client
 * that waits no longer does not end it.
 */
const WHOLE_LOG_MS = 900_000;
const WHOLE_LOG_TASKS: ReadonlySet<TaskName> = new Set(["statistics", "aqdefStart"]);

/** How long health shows a failure: it is not retried, and after a day somebody has seen it. */
const FAILURE_SHOWN_US = 24 * 3600 * 1_000_000;
/** How many failures are remembered; the newest are kept. */
const SHOWN_FAILURES = 1_000;

/** Figures of the pool, for metrics. */
export interface ArtefactFigures {
  running: number;
  waitingClients: number;
  waitingBackground: number;
  tasks: Iterable<{ labels: { task: string; outcome: string }; durations: DurationCounts }>;
}

export interface ArtefactWorkOptions extends Pick<ArtefactPoolOptions, "threads" | "report" | "threadModule"> {
  timers: Timers;
  /** Called for stored bytes that a task found damaged or missing. */
  onReadDamage(error: StorageError): void;
  nowUs(): number;
  /** For tests: another limit of waiting clients. */
  waitingClients?: number;
}

/** The artefact pool of the service: tasks of clients and of the recorder, and what health and metrics say about them. */
export class ArtefactWork {
  readonly #options: ArtefactWorkOptions;
  readonly #pool: ArtefactPool;
  /** One thread, which starts with the first question: it keeps what it has counted for the next one. */
  readonly #statistics: ArtefactPool;
  readonly #durations = new Map<string, { labels: { task: string; outcome: string }; durations: DurationCounts }>();
  /** Tasks that failed and have not succeeded since, by subject, and passing shortages, by code; the newest is last. */
  readonly #failures = new Map<string, { atUs: number; text: string }>();

  constructor(options: ArtefactWorkOptions) {
    this.#options = options;
    const poolOptions: ArtefactPoolOptions = {
      ...options,
      queueLimit: options.waitingClients ?? WAITING_CLIENTS,
      taskTimeoutMs: taskLimitMs,
      onOutcome: (outcome) => this.#note(outcome),
    };
    this.#pool = new ArtefactPool(poolOptions);
    this.#statistics = new ArtefactPool({ ...poolOptions, threads: 1 });
  }

  /** Runs a task for a waiting client. */
  readonly makeForClient: MakeArtefact = async (name, input, { signal, isContinued, room }) => {
    const ended = new AbortController();
    const end = (): void => ended.abort();
    if (signal?.aborted) end();
    signal?.addEventListener("abort", end, { once: true });
    const { timers } = this.#options;
    const late = isContinued ? undefined : timers.set(end, FIRST_PIECE_MS);
    try {
      const pool = name === "statistics" ? this.#statistics : this.#pool;
      const made = await pool.run(name, input, { priority: "client", isContinued, signal: ended.signal, room });
      // A report shows what is left, so its damages are no error.
      for (const damage of "damages" in made ? made.damages : []) {
        this.#options.onReadDamage(new StorageError("capture_damaged", damage));
      }
      return made;
    } catch (error) {
      throw error instanceof TaskError ? clientError(error) : error;
    } finally {
      if (late !== undefined) timers.clear(late);
      signal?.removeEventListener("abort", end);
    }
  };

  /** Runs a task for the recorder, at lower priority than those of clients. Never rejects. */
  async makeForRecorder({ name, input }: TaskMessage): Promise<TaskAnswer> {
    try {
      return { value: await this.#pool.run(name, input, { priority: "background" }) };
    } catch (error) {
      const { code, message } = error instanceof TaskError ? error : taskFailure(error);
      if (code === "capture_damaged") this.#options.onReadDamage(new StorageError(code, message));
      return { error: { code, message } };
    }
  }

  /** Row of health: degraded while a recent failure has not been followed by a success. */
  row(): ComponentRow {
    const row = { key: "artefacts", id: null, enabled: null, required: true } as const;
    const oldestUs = this.#options.nowUs() - FAILURE_SHOWN_US;
    for (const [key, { atUs }] of this.#failures) if (atUs < oldestUs) this.#failures.delete(key);
    const failures = [...this.#failures.values()];
    const [first, last] = [failures[0], failures.at(-1)];
    if (first === undefined || last === undefined) return { ...row, status: "healthy", detail: null };
    const failed = failures.length === 1 ? "a task" : `${failures.length} tasks`;
    const detail = `since ${formatTimeUs(first.atUs)} ${failed} failed, last ${last.text}`;
    return { ...row, status: "degraded", detail };
  }

  figures(): ArtefactFigures {
    return {
      running: this.#pool.running + this.#statistics.running,
      waitingClients: this.#pool.waiting("client") + this.#statistics.waiting("client"),
      waitingBackground: this.#pool.waiting("background"),
      tasks: this.#durations.values(),
    };
  }

  /** Ends all tasks at once; they and later ones fail with `closed`. */
  async close(): Promise<void> {
    await Promise.all([this.#pool.close(), this.#statistics.close()]);
  }

  #note({ task, error, durationMs }: TaskOutcome): void {
    this.#count(task.name, error?.code ?? "done", durationMs);
    const isPassing = error !== undefined && PASSING.includes(error.code);
    const key = isPassing ? error.code : subjectOf(task);
    const known = this.#failures.get(key);
    if (!isPassing) for (const code of PASSING) this.#failures.delete(code);
    this.#failures.delete(key);
    // A missing capture was removed in the meantime. If it was lost, those who read it report that.
    if (error === undefined || error.code === "capture_missing") return;
    const text = `${task.name}: ${error.message} (${error.code})`;
    const atUs = isPassing && known !== undefined ? known.atUs : this.#options.nowUs();
    this.#failures.set(key, { atUs, text });
    const [oldest] = this.#failures.keys();
    if (this.#failures.size > SHOWN_FAILURES && oldest !== undefined) this.#failures.delete(oldest);
  }

  #count(task: TaskName, outcome: string, durationMs: number): void {
    const key = `${task} ${outcome}`;
    let known = this.#durations.get(key);
    if (known === undefined) {
      known = { labels: { task, outcome }, durations: createDurationCounts() };
      this.#durations.set(key, known);
    }
    countDuration(known.durations, durationMs / 1000);
  }
}

/** The same task of the same part of the same capture. */
function subjectOf({ name, input }: TaskMessage): string {
  const source = "frame" in input ? input.frame : input;
  const path = "path" in source ? source.path : "";
  const frameId = "frameId" in source ? source.frameId : "";
  const part = "firstLine" in input ? input.firstLine : "rowBlock" in input ? input.rowBlock : "";
  return `${name} ${path} ${frameId} ${part}`;
}

function taskLimitMs({ name, input }: TaskMessage): number {
  if (WHOLE_LOG_TASKS.has(name)) return WHOLE_LOG_MS;
  if (name !== "filter" || !("geometry" in input)) return TASK_MS;
  const { width, lines } = input.geometry;
  return TASK_MS + width * lines * FILTERED_POSITION_MS;
}

/** Shortages that concern every task. They last until a task, whoever wants it, ends without one of them, even if that task fails. */
const PASSING: readonly string[] = [NO_THREAD, RESOURCE_SHORTAGE];
/** What the service lacks at the moment. */
const SHORTAGES: readonly string[] = [...PASSING, OUT_OF_MEMORY];

/** Why a piece cannot be made now, though the next request may get it; undefined for any other failure. */
function reasonForNow({ code, message }: TaskError): string | undefined {
  if (code === "queue_full") return "too many clients are waiting for files that are still being made";
  if (code === "cancelled") return "no thread was free to make the file in time";
  const lacks = "the service lacks the resources for this at the moment";
  return SHORTAGES.includes(code) ? `${lacks}: ${message}` : undefined;
}

/** The error of a download whose piece could not be made. */
function clientError(error: TaskError): Error {
  const { code, message } = error;
  const reason = reasonForNow(error);
  if (reason !== undefined) {
    return new ServiceError("unavailable", reason, { retry_after_seconds: RETRY_AFTER_SECONDS });
  }
  if (code === "closed") return new ServiceError("unavailable", "the service is stopping");
  // Retention removed it after the look-up. The next request gets a 410 or 404.
  if (code === "capture_missing") return new ServiceError("unavailable", "the capture was removed while it was read");
  return code === "capture_damaged" ? new StorageError(code, message) : new Error(`${code}: ${message}`);
}
