import { isNoRoom } from "./file-system.js";
import { StorageError } from "./storage-error.js";

/** What becomes of an operation that finds no room on the disk. */
export interface WriteRoom {
  /**
   * Runs the operation, and again from its start when it failed for want of room (`isNoRoom`) and there may be some now. It must be
   * repeatable after such a failure. Any other failure is passed on at once, and so is this one when there is no more waiting.
   */
  attempt<T>(operation: () => Promise<T>): Promise<T>;
  /** Nothing waits for room any more: its owner stops. */
  readonly isOver: boolean;
}

/** True when a write found no room after its owner had stopped waiting for some: nothing of the disk is broken by it. */
export function endedWithoutRoom(error: unknown, room: WriteRoom): boolean {
  return room.isOver && (isNoRoom(error) || (error instanceof StorageError && error.data.params.without_room === true));
}

/** Where nobody waits for room, a full disk is a failure like any other. */
export const FAILS_WITHOUT_ROOM: WriteRoom = { attempt: (operation) => operation(), isOver: true };
