/** The entry of the thread that makes one snapshot and ends: `workerData` is a `SnapshotRequest`, its one message a `SnapshotOutcome`. */
import { parentPort, workerData } from "node:worker_threads";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { SnapshotError } from "../../storage/snapshot/snapshot-format.js";
import type { StorageErrorData } from "../../storage/storage-error.js";
import { lowerThreadPriority } from "../thread-priority.js";
import { makeSnapshot, type SnapshotRequest } from "./make-snapshot.js";
import type { SnapshotOutcome } from "./snapshot-worker.js";

// A stop waits for it a few seconds at most; what clients and producers wait for goes first.
lowerThreadPriority(10);
const damages: StorageErrorData[] = [];
let outcome: SnapshotOutcome;
try {
  const request = workerData as SnapshotRequest;
  outcome = { made: await makeSnapshot(nodeFileSystem, request, ({ data }) => damages.push(data)), damages };
} catch (error) {
  if (error instanceof SnapshotError) outcome = { refused: error.message, damages };
  else outcome = { failed: error instanceof Error ? error.message : String(error), damages };
}
parentPort?.postMessage(outcome);
