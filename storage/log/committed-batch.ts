import { forEachHintEntry } from "./hint-format.js";
import { LOG_RECORD_TYPE, RECORD_HEADER_BYTES, readRecordHeader, recordLength } from "./record-format.js";

/** Where a record lies: `length` bytes, with header and padding, at `offset` of segment `segmentBase`. */
export interface RecordLocation {
  segmentBase: number;
  offset: number;
  length: number;
}

/**
 * Whole consecutive records as they are on disk, with CRCs that were verified or just computed. Live commits and
 * recovery deliver the same shape, so one fold serves both.
 *
 * `bytes` is valid until the callback that got the batch returns, or, from recovery, until its promise resolves. Copy
 * what you keep. To send the bytes to another thread, copy them first and transfer the copy, because posting a view
 * clones its whole buffer. The bytes of a hint are in memory of their own, and may be transferred without a copy.
 */
export interface CommittedBatch {
  bytes: Uint8Array;
  /**
   * True when the bytes are a hint file (hint-format.ts). It has the records of the segment that a start needs, with
   * their sequence numbers, times and places. Some have no body. `lastSequence` is the segment's.
   */
  isHint?: true;
  segmentBase: number;
  /** Offset of the first record in its segment. */
  offset: number;
  /**
   * The first sequence number, without opening states; above `lastSequence` in a batch that holds only an opening
   * state.
   */
  firstSequence: number;
  lastSequence: number;
  /** The largest time of its records. */
  lastTimeUs: number;
}

/** A record of a batch. Index section and body are views of the batch's bytes. */
export interface LogRecord {
  type: number;
  flags: number;
  sequence: number;
  timeUs: number;
  index: Uint8Array;
  body: Uint8Array;
}

type BatchOfRecords = Pick<CommittedBatch, "bytes" | "isHint" | "segmentBase" | "offset">;

/** Calls back for each record, in order. The log's own records (`isOwnRecord`) are included. */
export function forEachRecord(
  batch: BatchOfRecords,
  callback: (record: LogRecord, location: RecordLocation) => void,
): void {
  const { bytes, segmentBase } = batch;
  if (batch.isHint) {
    forEachHintEntry(bytes, ({ type, sequence, timeUs, index, body, offset, length }) =>
      callback({ type, flags: 0, sequence, timeUs, index, body }, { segmentBase, offset, length }),
    );
    return;
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.length; ) at += callBack(batch, view, at, callback);
}

/**
 * Does what `forEachRecord` does, one record for each step of the generator. So the caller can do other things in
 * between. A hint is one step: it only comes at a start, when nobody waits.
 */
export function* stepThroughRecords(
  batch: BatchOfRecords,
  callback: (record: LogRecord, location: RecordLocation) => void,
): Generator<void, void> {
  const { bytes } = batch;
  if (batch.isHint) {
    forEachRecord(batch, callback);
    yield;
    return;
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.length; ) {
    at += callBack(batch, view, at, callback);
    yield;
  }
}

/** @returns the record's length */
function callBack(
  { bytes, segmentBase, offset }: BatchOfRecords,
  view: DataView,
  at: number,
  callback: (record: LogRecord, location: RecordLocation) => void,
): number {
  const header = readRecordHeader(view, at);
  const length = recordLength(header.indexLength, header.bodyLength);
  const bodyAt = at + RECORD_HEADER_BYTES + header.indexLength;
  const record: LogRecord = {
    type: header.type,
    flags: header.flags,
    sequence: header.sequence,
    timeUs: header.timeUs,
    index: bytes.subarray(at + RECORD_HEADER_BYTES, bodyAt),
    body: bytes.subarray(bodyAt, bodyAt + header.bodyLength),
  };
  callback(record, { segmentBase, offset: offset + at, length });
  return length;
}

const OWN_TYPES: ReadonlySet<number> = new Set(Object.values(LOG_RECORD_TYPE));

/** True for records that the log writes for itself. Of these, only opening states matter to its owner. */
export function isOwnRecord(type: number): boolean {
  return OWN_TYPES.has(type);
}
