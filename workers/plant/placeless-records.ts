import { RECORD_HEADER_BYTES, readRecordHeader, recordLength } from "../../storage/log/record-format.js";

/**
 * A copy of these records without what depends on their place: how far the log was durable, and the header's CRC, are zeros. Recovery after a crash may
 * move records to the next segment, and `plant restore` writes them into new ones. They are the same records all the same.
 *
 * @param bytes records, or the first bytes of one
 */
export function placeless(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  // A copy also of a Buffer, whose `slice` is none.
  const copy = new Uint8Array(bytes);
  const view = new DataView(copy.buffer);
  for (let at = 0; at + RECORD_HEADER_BYTES <= copy.length; ) {
    const { indexLength, bodyLength } = readRecordHeader(view, at);
    copy.fill(0, at + 16, at + 24);
    copy.fill(0, at + 44, at + 48);
    at += recordLength(indexLength, bodyLength);
  }
  return copy;
}

/** Whole records by their sequence numbers, placeless. */
export function placelessRecords(bytes: Uint8Array): Map<number, Uint8Array> {
  const copy = placeless(bytes);
  const view = new DataView(copy.buffer);
  const records = new Map<number, Uint8Array>();
  for (let at = 0; at < copy.length; ) {
    const { sequence, indexLength, bodyLength } = readRecordHeader(view, at);
    const end = at + recordLength(indexLength, bodyLength);
    records.set(sequence, copy.subarray(at, end));
    at = end;
  }
  return records;
}
