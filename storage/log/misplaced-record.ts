import { isReadDamage } from "./read-damage.js";

/** An intact record, and another one than was looked for there. Where nothing was written anew, a fault of the service, and no damage. */
export class MisplacedRecordError extends Error {
  override name = "MisplacedRecordError";
}

/** True for what a read may end with where compaction has moved the record meanwhile: the file before has it, or another place. */
export function mayHaveMoved(error: unknown): boolean {
  return isReadDamage(error) || error instanceof MisplacedRecordError;
}
