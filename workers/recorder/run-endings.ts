import { type OpenWork, openWork, type RunEnding } from "../../core/run/run-end.js";
import type { RunState } from "../../core/run/run-state.js";
import type { Timers } from "../../core/timers.js";

/** Recording a run's end fails while too much is waiting for the log. It is tried again after this time. */
const RETRY_MS = 1_000;

export interface RunEndingsOptions {
  timers: Timers;
  finalizeTimeoutMs: number;
  /** True: a finalizing run also waits for the artefacts of its captures. */
  processesCaptures: boolean;
  /** Null: a run waits for its producer without end. */
  orphanTimeoutMs: number | null;
  activeRun(id: string): RunState | undefined;
  /** Active runs whose last message came from this producer. */
  runsLastWrittenBy(producer: string): RunState[];
  /** Records the end. Throws if it cannot be recorded now. */
  endRun(run: RunState, ending: RunEnding): void;
  report(error: unknown): void;
}

/**
 * Ends runs without a message from a producer. These are finalizing runs, when nothing is open any more or time is up,
 * and runs whose producer stays away.
 *
 * After a restart a finalizing run gets its whole time-out again, not only the rest of it. It waits for messages that
 * producers still hold, and they can send them only when the service is back.
 */
export class RunEndings {
  readonly #options: RunEndingsOptions;
  /** Timers of finalizing runs that wait, by run id. */
  readonly #finalizing = new Map<string, unknown>();
  /** Timers of producers that are away, by name. */
  readonly #away = new Map<string, unknown>();
  #isStopped = false;

  constructor(options: RunEndingsOptions) {
    this.#options = options;
  }

  /**
   * Called at start, once the state is whole. Finalizing runs go on, and every producer counts as away until it
   * connects.
   */
  resume(runs: Iterable<RunState>, producers: Iterable<string>): void {
    for (const run of runs) this.runChanged(run);
    for (const producer of producers) this.producerAway(producer);
  }

  /** Called when a run has changed, and at start. */
  runChanged(run: RunState): void {
    if (run.status !== "finalizing" || this.#isStopped) return;
    if (isOver(openWork(run, this.#options.processesCaptures))) this.#complete(run, []);
    else if (!this.#finalizing.has(run.id)) this.#wait(run.id, this.#options.finalizeTimeoutMs);
  }

  runEnded(id: string): void {
    this.#clear(this.#finalizing, id);
  }

  producerBack(producer: string): void {
    this.#clear(this.#away, producer);
  }

  producerAway(producer: string): void {
    const { orphanTimeoutMs, timers } = this.#options;
    if (orphanTimeoutMs === null || this.#isStopped) return;
    this.#clear(this.#away, producer);
    this.#away.set(
      producer,
      timers.set(() => this.#failOrphans(producer, orphanTimeoutMs), orphanTimeoutMs),
    );
  }

  stop(): void {
    this.#isStopped = true;
    for (const id of [...this.#finalizing.keys()]) this.#clear(this.#finalizing, id);
    for (const producer of [...this.#away.keys()]) this.#clear(this.#away, producer);
  }

  #clear(timers: Map<string, unknown>, key: string): void {
    if (!timers.has(key)) return;
    this.#options.timers.clear(timers.get(key));
    timers.delete(key);
  }

  #wait(runId: string, delayMs: number): void {
    this.#clear(this.#finalizing, runId);
    this.#finalizing.set(
      runId,
      this.#options.timers.set(() => this.#timeUp(runId), delayMs),
    );
  }

  #timeUp(runId: string): void {
    this.#finalizing.delete(runId);
    const run = this.#options.activeRun(runId);
    if (run?.status !== "finalizing") return;
    const open = openWork(run, this.#options.processesCaptures);
    const timeoutSeconds = this.#options.finalizeTimeoutMs / 1000;
    const { jobs: open_jobs, frames: open_frames, files: open_files } = open;
    const data = { timeout_seconds: timeoutSeconds, open_jobs, open_frames, open_files };
    this.#complete(run, isOver(open) ? [] : [{ eventType: "finalize_timeout", data }]);
  }

  #complete(run: RunState, notes: RunEnding["notes"]): void {
    try {
      this.#options.endRun(run, { status: "completed", errorMessage: null, notes });
    } catch (error) {
      this.#options.report(error);
      this.#wait(run.id, RETRY_MS);
    }
  }

  #failOrphans(producer: string, orphanTimeoutMs: number): void {
    this.#away.delete(producer);
    for (const run of this.#options.runsLastWrittenBy(producer)) {
      // A finalizing run ends by itself.
      if (run.status !== "pending" && run.status !== "running") continue;
      const errorMessage = `the service failed the run: its producer ${producer} stayed away for ${orphanTimeoutMs / 1000} s`;
      const note = { eventType: "orphan_timeout", data: { producer, timeout_seconds: orphanTimeoutMs / 1000 } };
      try {
        this.#options.endRun(run, { status: "failed", errorMessage, notes: [note] });
      } catch (error) {
        this.#options.report(error);
        this.#away.set(
          producer,
          this.#options.timers.set(() => this.#failOrphans(producer, orphanTimeoutMs), RETRY_MS),
        );
        return;
      }
    }
  }
}

function isOver({ jobs, frames, files }: OpenWork): boolean {
  return jobs.length + frames.length + files.length === 0;
}
