import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { SnapshotError } from "../../../storage/snapshot/snapshot-format.js";
import type { StorageErrorData } from "../../../storage/storage-error.js";
import { makeSnapshot, type SnapshotRequest } from "../../../workers/snapshot/make-snapshot.js";
import type { SnapshotOutcome, SnapshotWork } from "../../../workers/snapshot/snapshot-worker.js";

/** Makes snapshots in this thread, as snapshot-worker.ts does in one of its own. Given up, the work stops where it stands. */
export function snapshotsOn(fileSystem: FileSystem): (request: SnapshotRequest) => SnapshotWork {
  return (request) => {
    let isCancelled = false;
    let end: (outcome: SnapshotOutcome) => void = () => {};
    const outcome = new Promise<SnapshotOutcome>((resolve) => {
      end = resolve;
    });
    const stopping = new Proxy(fileSystem, {
      get: (target, name) => {
        const operation = target[name as keyof FileSystem] as (...args: unknown[]) => unknown;
        return (...args: unknown[]) => (isCancelled ? new Promise(() => {}) : operation.apply(target, args));
      },
    });
    const damages: StorageErrorData[] = [];
    makeSnapshot(stopping, request, ({ data }) => damages.push(data)).then(
      (made) => end({ made, damages }),
      (error: Error) =>
        end({ ...(error instanceof SnapshotError ? { refused: error.message } : { failed: error.message }), damages }),
    );
    const cancel = (): void => {
      isCancelled = true;
      end({ failed: "its thread ended" });
    };
    return { outcome, cancel };
  };
}
