/**
 * Memory that is kept back for tables that grow while a record is applied. A record that was applied in part cannot be applied again, so memory must
 * not run out in between. When the system gives none, the reserve is given up for it. The next record waits until the reserve is whole again.
 *
 * Each thread has its own. It is never written, so it takes address space, and no memory until it is given up.
 */
import { isOutOfMemory } from "../disk/file-system-error.js";

/** Several times what the tables need for one record. */
const RESERVE_BYTES = 8 * 1024 * 1024;

let reserve: ArrayBuffer | null = null;
let isGivenUp = false;

/** True: the next record has to wait for `fillReserve`. */
export function isReserveGivenUp(): boolean {
  return isGivenUp;
}

/** Makes the reserve, unless it is there. @throws RangeError when the system has no memory for it */
export function fillReserve(): void {
  reserve ??= new ArrayBuffer(RESERVE_BYTES);
  isGivenUp = false;
}

/** What `make` allocates, if need be with the memory of the reserve. @throws RangeError when that is not enough either */
export function allocated<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (reserve === null || !isOutOfMemory(error)) throw error;
    // The engine collects garbage when it finds no memory, and then looks again.
    reserve = null;
    isGivenUp = true;
    return make();
  }
}
