/**
 * The log's record of a stretch of numbers whose records compaction dropped: it covers them, so that recovery finds no hole, and keeps
 * what they must leave behind. It is only written into a segment that was durable to its end when it was compacted.
 *
 * | part | bytes | |
 * |---|---|---|
 * | header | 48 | record-format.ts: type 3, flags 1; sequence the last dropped number, durable_up_to at least that, time the largest of theirs |
 * | index section | 8 | the first dropped number, two u32, low first |
 * | body | … | the owner's |
 *
 * Example: numbers 3 to 7 dropped, durable up to 9, time 1,700,000,000,000,001 µs, body `"gone"`, in a segment of salt 0x12345678 at
 * offset 64:
 *
 *     52454331 0300 01 01 0700000000000000 0900000000000000 01401e18240a0600
 *     08000000 04000000 1efc8f01 0a9db08f 0300000000000000 676f6e65 00000000
 */
import {
  LOG_RECORD_TYPE,
  RECORD_FLAG_MUST_UNDERSTAND,
  RECORD_HEADER_BYTES,
  type RecordHeader,
  recordLength,
  writeRecordHeader,
} from "../log/record-format.js";

const INDEX_BYTES = 8;
const HIGH = 0x1_0000_0000;

export interface DroppedStretch {
  firstSequence: number;
  lastSequence: number;
  /** What the segment's end says to be durable. */
  durableUpTo: number;
  /** The largest of the dropped records. */
  timeUs: number;
  body: Uint8Array;
}

/** Bytes of the whole record. */
export function droppedRecordBytes(bodyBytes: number): number {
  return recordLength(INDEX_BYTES, bodyBytes);
}

/** The record, sealed for the place where it goes. */
export function encodeDroppedRecord(stretch: DroppedStretch, salt: number, offset: number): Uint8Array {
  const { firstSequence, lastSequence, durableUpTo, timeUs, body } = stretch;
  const bytes = new Uint8Array(droppedRecordBytes(body.length));
  const view = new DataView(bytes.buffer);
  view.setUint32(RECORD_HEADER_BYTES, firstSequence >>> 0, true);
  view.setUint32(RECORD_HEADER_BYTES + 4, Math.floor(firstSequence / HIGH), true);
  bytes.set(body, RECORD_HEADER_BYTES + INDEX_BYTES);
  const header = {
    type: LOG_RECORD_TYPE.dropped,
    flags: RECORD_FLAG_MUST_UNDERSTAND,
    sequence: lastSequence,
    durableUpTo,
    timeUs,
    indexLength: INDEX_BYTES,
    bodyLength: body.length,
  };
  writeRecordHeader(bytes, view, 0, header, salt, offset);
  return bytes;
}

/** The first number that a dropped record's index section names; null when that is none. */
export function droppedFrom(index: Uint8Array): number | null {
  if (index.length !== INDEX_BYTES) return null;
  const view = new DataView(index.buffer, index.byteOffset, index.byteLength);
  return view.getUint32(4, true) * HIGH + view.getUint32(0, true);
}

/** The first number that an intact record of this header covers, or why it cannot be believed. */
export function firstCovered(header: RecordHeader, bytes: Uint8Array, at: number): number | { fault: string } {
  if (header.type !== LOG_RECORD_TYPE.dropped) return header.sequence;
  const indexAt = at + RECORD_HEADER_BYTES;
  const first = droppedFrom(bytes.subarray(indexAt, indexAt + header.indexLength));
  if (first === null || first < 1) return { fault: "a dropped stretch without its first number" };
  if (first > header.sequence) return { fault: `a dropped stretch from ${first} back to ${header.sequence}` };
  if (header.durableUpTo < header.sequence) {
    return { fault: `a dropped stretch up to ${header.sequence}, of which ${header.durableUpTo} was durable` };
  }
  return first;
}
