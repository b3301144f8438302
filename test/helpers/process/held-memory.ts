import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Bytes of heap and buffers that this thread still holds once its garbage is collected. */
export function heldBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Bytes of the array buffers that this thread still holds once its garbage is collected. */
export function heldBufferBytes(): number {
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}

/**
 * What nothing refers to is gone. Twice: buffers go with the collection after that of what held them, and a collection that was under way keeps
 * what was let go since it began.
 */
export function collectGarbage(): void {
  collect();
  collect();
}
