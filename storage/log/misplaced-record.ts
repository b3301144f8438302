import { isReadDamage } from "./read-damage.js";

/** An intact record, but not the wanted one. If compaction has not rewritten the segment, this is a fault of the service, not damage. */
export class MisplacedRecordError extends Error {
  override name = "MisplacedRecordError";
}

/** True for an error that can mean that compaction has moved the record meanwhile: the old file or a new place has it. */
export function mayHaveMoved(error: unknown): boolean {
  return isReadDamage(error) || error instanceof MisplacedRecordError;
}
