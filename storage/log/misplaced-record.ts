/** An intact record, but not the wanted one: a location is wrong. This is a fault of the service, not damage. */
export class MisplacedRecordError extends Error {
  override name = "MisplacedRecordError";
}
