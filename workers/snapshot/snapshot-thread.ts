/** The entry of the thread that makes one snapshot and ends: `workerData` is a `SnapshotRequest`, its one message a `SnapshotOutcome`. */
import { parentPort, workerData } from "node:worker_threads";
import { nodeFileSystem } from "../../storage/file-system.js";
import { SnapshotError } from "../../storage/snapshot-format.js";
import { lowerThreadPriority } from "../thread-priority.js";
import { makeSnapshot, type SnapshotRequest } from "./make-snapshot.js";
import type { SnapshotOutcome } from "./snapshot-worker.js";

// Nobody waits for it.
lowerThreadPriority(10);
let outcome: SnapshotOutcome;
try {
  outcome = { made: await makeSnapshot(nodeFileSystem, workerData as SnapshotRequest) };
} catch (error) {
  if (error instanceof SnapshotError) outcome = { refused: error.message };
  else outcome = { failed: error instanceof Error ? error.message : String(error) };
}
parentPort?.postMessage(outcome);
