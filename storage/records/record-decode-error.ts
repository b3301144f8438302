/** Thrown for a record whose bytes are intact, but have no meaning that this release knows. */
export class RecordDecodeError extends Error {
  override name = "RecordDecodeError";
}
