/** A record whose bytes are intact, and are none that a release wrote. */
export class RecordDecodeError extends Error {
  override name = "RecordDecodeError";
}
