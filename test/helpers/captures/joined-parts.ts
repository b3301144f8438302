import { joinedBytes } from "../../../storage/snapshot/memory-snapshot.js";

/** The parts of a column as one array. */
export function joinedParts<A extends Uint8Array | Uint32Array | Float64Array>(
  parts: Iterable<A>,
  Type: { new (buffer: ArrayBuffer): A },
): A {
  return new Type(joinedBytes(parts).buffer);
}
