import { Worker } from "node:worker_threads";
import { monotonicMs, type ServiceClock } from "../../../core/service-clock.js";
import type {
  DeliveryJob,
  DeliveryReport,
  DispatcherOptions,
  DispatcherToRecorder,
  RecorderToDispatcher,
} from "./dispatcher-messages.js";

export interface DispatcherCallbacks {
  onReports(reports: readonly DeliveryReport[]): void;
  /** The thread ended by itself. Attempts that were under way are never reported. */
  onFailure(message: string): void;
}

/** The dispatcher as the recorder sees it. */
export interface DispatcherHandle {
  /** Resolves when the thread has loaded its modules, or has failed. Undefined: there is nothing to wait for. */
  loaded?: Promise<void>;
  serving(port: number): void;
  deliver(jobs: DeliveryJob[]): void;
  /** Resolves when every attempt under way has ended and is reported, or was cut short after `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

/** Starts the dispatcher thread. @param clock gives attempts their times, and is never earlier than these */
export function startDispatcher(
  options: DispatcherOptions,
  callbacks: DispatcherCallbacks,
  clock: ServiceClock,
): DispatcherHandle {
  const worker = new Worker(new URL("./dispatcher-thread.js", import.meta.url), {
    workerData: options,
    name: "dispatcher",
    // Objects of an attempt live for milliseconds. With a larger young generation they are dead when it is collected (measured: 1.1 times
    // as many deliveries).
    resourceLimits: { maxYoungGenerationSizeMb: 128 },
  });
  let isStopping = false;
  let hasEnded = false;
  let endLoading = (): void => {};
  const loaded = new Promise<void>((resolve) => (endLoading = resolve));
  const post = (message: RecorderToDispatcher): void => {
    if (!hasEnded) worker.postMessage(message);
  };
  const fail = (message: string): void => {
    if (hasEnded) return;
    hasEnded = true;
    endLoading();
    if (!isStopping) callbacks.onFailure(message);
  };
  worker.on("message", (message: DispatcherToRecorder) => {
    if (message.kind === "loaded") return endLoading();
    for (const { attempt } of message.reports) if ("completedAtUs" in attempt) clock.observe(attempt.completedAtUs);
    callbacks.onReports(message.reports);
  });
  worker.on("error", (error) => fail(error.stack ?? error.message));
  const exited = new Promise<void>((resolve) => {
    worker.on("exit", (code) => {
      fail(`the dispatcher thread ended with ${code}`);
      resolve();
    });
  });
  return {
    loaded,
    serving: (port) => post({ kind: "serving", port }),
    deliver: (jobs) => post({ kind: "deliver", jobs, now: { timeUs: clock.tick(), atMs: monotonicMs() } }),
    stop(graceMs) {
      isStopping = true;
      post({ kind: "stop", graceMs });
      return exited;
    },
  };
}
