import { StorageError } from "../storage-error.js";
import { isRepeatable } from "./file-system.js";

/** What becomes of an operation that finds no room on the disk, or for which the system lacks descriptors or memory. */
export interface WriteRoom {
  /**
   * Runs the operation, and again from its start when it failed for such a want (`isRepeatable`) and that may be over. It must be
   * repeatable after such a failure. Any other failure is passed on at once, and so is this one when there is no more waiting.
   */
  attempt<T>(operation: () => Promise<T>): Promise<T>;
  /** Nothing waits any more: its owner stops. */
  readonly isOver: boolean;
}

/** True when an operation failed for such a want after its owner had stopped waiting: nothing of the disk is broken by it. */
export function endedWithoutRoom(error: unknown, room: WriteRoom): boolean {
  return (
    room.isOver && (isRepeatable(error) || (error instanceof StorageError && error.data.params.without_room === true))
  );
}

/** Where nobody waits, such a want is a failure like any other. */
export const FAILS_WITHOUT_ROOM: WriteRoom = { attempt: (operation) => operation(), isOver: true };
