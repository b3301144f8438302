import { countDuration, createDurationCounts, type DurationCounts } from "../../core/duration-counts.js";
import type { ComponentRow } from "../../core/health.js";
import { ServiceError } from "../../core/service-errors.js";
import type { Timers } from "../../core/timers.js";
import { formatTimeUs } from "../../core/timestamps.js";
import { StorageError } from "../../storage/storage-error.js";
import { SplitFilter } from "../../workers/artefacts/filter/split-filter.js";
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
import type { MakeArtefact } from "./made-files.js";

/** Clients that wait for a first piece: with a piece or two in a few milliseconds, the last of them has its own within a second or so. */
const WAITING_CLIENTS = 256;

/** What a client is told that comes beyond them. */
const RETRY_AFTER_SECONDS = 1;

/** How long a client may wait for the first bytes, which the pipeline's deadline for replies does not see. */
const FIRST_PIECE_MS = 25_000;

/** Any task but those of the filter reads once through at most some gigabytes. */
const TASK_MS = 120_000;
/** The filter over heights that are nothing but noise, on a slow core: 20 times what it takes on a usual one. */
const FILTERED_POSITION_MS = 0.1;

/** A format that could not be made is not tried again: after a day whoever looks at health has seen it. */
const FAILURE_SHOWN_US = 24 * 3600 * 1_000_000;
/** Bound of the failures that are kept, the newest of them. */
const SHOWN_FAILURES = 1_000;

/** What the pool did and has to do, for metrics. */
export interface ArtefactFigures {
  running: number;
  waitingClients: number;
  waitingBackground: number;
  tasks: Iterable<{ labels: { task: string; outcome: string }; durations: DurationCounts }>;
}

export interface ArtefactWorkOptions extends Pick<ArtefactPoolOptions, "threads" | "report" | "threadModule"> {
  timers: Timers;
  /** Told of stored bytes that a task found damaged or missing. */
  onReadDamage(error: StorageError): void;
  nowUs(): number;
  /** For tests: another bound of clients that wait. */
  waitingClients?: number;
}

/** The pool of the service: who gives it tasks, what becomes of them, and what health and metrics say of it. */
export class ArtefactWork {
  readonly #options: ArtefactWorkOptions;
  readonly #pool: ArtefactPool;
  readonly #filter: SplitFilter;
  readonly #durations = new Map<string, { labels: { task: string; outcome: string }; durations: DurationCounts }>();
  /** Tasks that failed and have not been done since, by what they are of; the last is the newest. */
  readonly #failures = new Map<string, { atUs: number; text: string }>();

  constructor(options: ArtefactWorkOptions) {
    this.#options = options;
    this.#pool = new ArtefactPool({
      ...options,
      queueLimit: options.waitingClients ?? WAITING_CLIENTS,
      taskTimeoutMs: taskLimitMs,
      onOutcome: (outcome) => this.#note(outcome),
    });
    this.#filter = new SplitFilter(this.#pool);
  }

  /** For a client that waits. */
  readonly makeForClient: MakeArtefact = async (name, input, { signal, isContinued }) => {
    const ended = new AbortController();
    const end = (): void => ended.abort();
    if (signal?.aborted) end();
    signal?.addEventListener("abort", end, { once: true });
    const { timers } = this.#options;
    const late = isContinued ? undefined : timers.set(end, FIRST_PIECE_MS);
    try {
      return await this.#pool.run(name, input, { priority: "client", isContinued, signal: ended.signal });
    } catch (error) {
      throw error instanceof TaskError ? clientError(error) : error;
    } finally {
      if (late !== undefined) timers.clear(late);
      signal?.removeEventListener("abort", end);
    }
  };

  /** For the recorder, beside what clients wait for. Never rejects. */
  async makeForRecorder({ name, input }: TaskMessage): Promise<TaskAnswer> {
    try {
      const options = { priority: "background" } as const;
      const isFilter = name === "filter" && "geometry" in input;
      return { value: await (isFilter ? this.#filter.run(input, options) : this.#pool.run(name, input, options)) };
    } catch (error) {
      const { code, message } = error instanceof TaskError ? error : taskFailure(error);
      if (code === "capture_damaged") this.#options.onReadDamage(new StorageError(code, message));
      return { error: { code, message } };
    }
  }

  /** Row of health: degraded while a task that failed has neither been done since nor become old. */
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
      running: this.#pool.running,
      waitingClients: this.#pool.waiting("client"),
      waitingBackground: this.#pool.waiting("background"),
      tasks: this.#durations.values(),
    };
  }

  /** Ends all tasks, and whatever comes after, at once: `closed`. */
  close(): Promise<void> {
    return this.#pool.close();
  }

  #note({ task, error, durationMs }: TaskOutcome): void {
    this.#count(task.name, error?.code ?? "done", durationMs);
    const key = subjectOf(task);
    this.#failures.delete(key);
    // A capture that is not there was removed meanwhile; where it is lost, those who read it say so.
    if (error === undefined || error.code === "capture_missing") return;
    const text = `${task.name}: ${error.message} (${error.code})`;
    this.#failures.set(key, { atUs: this.#options.nowUs(), text });
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
  if (name === "filterTogether" && "frame" in input) return filterLimitMs(input.frame.geometry);
  return name === "filter" && "geometry" in input ? filterLimitMs(input.geometry) : TASK_MS;
}

function filterLimitMs({ width, lines }: { width: number; lines: number }): number {
  return TASK_MS + width * lines * FILTERED_POSITION_MS;
}

/** What a download that waits for a piece fails with. */
function clientError({ code, message }: TaskError): Error {
  switch (code) {
    case "queue_full":
      return new ServiceError("unavailable", "too many clients wait for files that are being made", {
        retry_after_seconds: RETRY_AFTER_SECONDS,
      });
    case "cancelled":
      return new ServiceError("unavailable", "no thread came to it in time", {
        retry_after_seconds: RETRY_AFTER_SECONDS,
      });
    case NO_THREAD:
    case RESOURCE_SHORTAGE:
    case OUT_OF_MEMORY:
      return new ServiceError("unavailable", `the service has too little of what this takes: ${message}`, {
        retry_after_seconds: RETRY_AFTER_SECONDS,
      });
    case "closed":
      return new ServiceError("unavailable", "the service is ending");
    case "capture_missing":
      // Retention removed it after it was looked up: the same request is told so.
      return new ServiceError("unavailable", "the capture was removed while it was read");
    case "capture_damaged":
      return new StorageError(code, message);
    default:
      return new Error(`${code}: ${message}`);
  }
}
