import { LOG_RECORD_TYPE, RECORD_HEADER_BYTES, readRecordHeader, recordLength } from "./record-format.js";

/** Where a record lies: in segment `segmentBase`, `length` bytes with header and padding, at `offset`. */
export interface RecordLocation {
  segmentBase: number;
  offset: number;
  length: number;
}

/**
 * Whole consecutive records as on disk, their CRCs verified or just computed. Live commits and recovery deliver the same shape, so
 * that one fold serves both.
 *
 * `bytes` is valid until the callback that got the batch returns (or, from recovery, until its promise resolves): copy what stays.
 * To send it to another thread, `slice()` it first and transfer the copy; a posted view would clone its whole buffer.
 */
export interface CommittedBatch {
  bytes: Uint8Array;
  segmentBase: number;
  /** Of the first record in its segment. */
  offset: number;
  /** The first number that it covers, opening states apart; above `lastSequence` in a batch of just an opening state. */
  firstSequence: number;
  lastSequence: number;
  /** The largest time in it. */
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

type BatchOfRecords = Pick<CommittedBatch, "bytes" | "segmentBase" | "offset">;

/** Calls back for each record, in order. The log's own records are among them: see `isOwnRecord`. */
export function forEachRecord(
  batch: BatchOfRecords,
  callback: (record: LogRecord, location: RecordLocation) => void,
): void {
  const view = viewOf(batch);
  for (let at = 0; at < batch.bytes.length; ) at += callBack(batch, view, at, callback);
}

/** As `forEachRecord`, one record at each step, for who has other things to do in between. */
export function* stepThroughRecords(
  batch: BatchOfRecords,
  callback: (record: LogRecord, location: RecordLocation) => void,
): Generator<void, void> {
  const view = viewOf(batch);
  for (let at = 0; at < batch.bytes.length; ) {
    at += callBack(batch, view, at, callback);
    yield;
  }
}

function viewOf({ bytes }: BatchOfRecords): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
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

/** True for the records that the log writes for itself; of these an opening state and a dropped stretch tell its owner something. */
export function isOwnRecord(type: number): boolean {
  return OWN_TYPES.has(type);
}
