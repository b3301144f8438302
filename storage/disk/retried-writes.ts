import { StorageError } from "../storage-error.js";
import { isRepeatable } from "./file-system-error.js";

/** What happens to an operation when the disk has no room, or the system lacks descriptors or memory. */
export interface WriteRoom {
  /**
   * Runs the operation. If it fails for such a lack (`isRepeatable`), waits and runs it again from its start, so it must be repeatable. Any other
   * failure is passed on at once, and so is this one once `isOver`.
   */
  attempt<T>(operation: () => Promise<T>): Promise<T>;
  /** True when nothing waits any more, because the owner stops. */
  readonly isOver: boolean;
}

/** True when an operation failed for such a lack after its owner had stopped waiting. The disk is not broken then. */
export function endedWithoutRoom(error: unknown, room: WriteRoom): boolean {
  return (
    room.isOver && (isRepeatable(error) || (error instanceof StorageError && error.data.params.without_room === true))
  );
}

/** Does not wait: such a lack is a failure like any other. */
export const FAILS_WITHOUT_ROOM: WriteRoom = { attempt: (operation) => operation(), isOver: true };
