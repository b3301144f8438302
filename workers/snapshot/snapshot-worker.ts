import { Worker } from "node:worker_threads";
import type { StorageErrorData } from "../../storage/storage-error.js";
import type { SnapshotMade, SnapshotRequest } from "./make-snapshot.js";

/**
 * How the making of a snapshot ended: `refused` when the log does not allow one, `failed` for anything else; both for people. `damages`:
 * stored bytes that it met and that are damaged.
 */
export type SnapshotOutcome = ({ made: SnapshotMade } | { refused: string } | { failed: string }) & {
  damages?: readonly StorageErrorData[];
};

/** A snapshot being made. */
export interface SnapshotWork {
  /** Never rejects. */
  readonly outcome: Promise<SnapshotOutcome>;
  /** Gives it up. What it has written stays behind as a temporary file, which the next opening removes. */
  cancel(): void;
}

/** Makes a snapshot in a thread of its own, which ends with it. */
export function startSnapshotWorker(request: SnapshotRequest): SnapshotWork {
  const worker = new Worker(new URL("./snapshot-thread.js", import.meta.url), {
    workerData: request,
    name: "snapshot",
  });
  const outcome = new Promise<SnapshotOutcome>((resolve) => {
    worker.on("message", resolve);
    worker.on("error", (error) => resolve({ failed: error instanceof Error ? error.message : String(error) }));
    worker.on("exit", (code) => resolve({ failed: `its thread ended with ${code}` }));
  });
  return { outcome, cancel: () => void worker.terminate() };
}
