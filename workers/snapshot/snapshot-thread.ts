/** The entry of the thread that makes one snapshot and ends: `workerData` is a `SnapshotRequest`, its one message a `SnapshotOutcome`. */
import { parentPort, workerData } from "node:worker_threads";
import { nodeFileSystem } from "../../storage/file-system.js";
import { SnapshotError } from "../../storage/snapshot-format.js";
import { lowerThreadPriority } from "../thread-priority.js";
import { makeSnapshot, type SnapshotRequest } from "./make-snapshot.js";
import type { SnapshotOutcome } from "./snapshot-worker.js";

// A stop waits for it a few seconds at most, compaction for its turn; what clients and producers wait for goes first.
lowerThreadPriority(10);
let outcome: SnapshotOutcome;
try {
  outcome = { made: await makeSnapshot(nodeFileSystem, workerData as SnapshotRequest) };
} catch (error) {
  if (error instanceof SnapshotError) outcome = { refused: error.message };
  else outcome = { failed: error instanceof Error ? error.message : String(error) };
}
parentPort?.postMessage(outcome);
