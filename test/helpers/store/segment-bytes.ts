/** Segments taken apart and put together again, with every CRC right: what only a wicked writer can do to a log. */
import { crc32 } from "node:zlib";
import {
  RECORD_HEADER_BYTES,
  type RecordHeader,
  readRecordHeader,
  recordLength,
  writeHeaderCrc,
  writeRecordHeader,
} from "../../../storage/log/record-format.js";
import { encodeSegmentHeader, SEGMENT_FORMAT_VERSION, SEGMENT_HEADER_BYTES } from "../../../storage/log/segment.js";

export interface PlainRecord extends Omit<RecordHeader, "version" | "indexLength" | "bodyLength" | "contentCrc"> {
  index: Uint8Array;
  body: Uint8Array;
}

interface PlainSegment {
  base: number;
  salt: number;
  records: PlainRecord[];
}

/** The record at that offset, going by its lengths. */
export function recordAt(bytes: Uint8Array, offset: number): PlainRecord {
  const { type, flags, sequence, durableUpTo, timeUs, indexLength, bodyLength } = readRecordHeader(
    viewOf(bytes),
    offset,
  );
  const bodyAt = offset + RECORD_HEADER_BYTES + indexLength;
  const index = bytes.slice(offset + RECORD_HEADER_BYTES, bodyAt);
  return { type, flags, sequence, durableUpTo, timeUs, index, body: bytes.slice(bodyAt, bodyAt + bodyLength) };
}

/** The bytes of a segment, as the log would have written it. */
export function bytesOfSegment({ base, salt, records }: PlainSegment): Uint8Array {
  const sizeBytes = records.reduce((sum, { index, body }) => sum + recordLength(index.length, body.length), 0);
  const bytes = new Uint8Array(SEGMENT_HEADER_BYTES + sizeBytes);
  bytes.set(encodeSegmentHeader({ version: SEGMENT_FORMAT_VERSION, salt, base }));
  let offset = SEGMENT_HEADER_BYTES;
  for (const { index, body, ...rest } of records) {
    bytes.set(index, offset + RECORD_HEADER_BYTES);
    bytes.set(body, offset + RECORD_HEADER_BYTES + index.length);
    const header = { ...rest, indexLength: index.length, bodyLength: body.length };
    writeRecordHeader(bytes, viewOf(bytes), offset, header, salt, offset);
    offset += recordLength(index.length, body.length);
  }
  return bytes;
}

/** Where records begin, going by the lengths alone. */
export function recordOffsets(bytes: Uint8Array): number[] {
  const offsets: number[] = [];
  const view = viewOf(bytes);
  for (let offset = SEGMENT_HEADER_BYTES; offset + RECORD_HEADER_BYTES <= bytes.length; ) {
    const { indexLength, bodyLength } = readRecordHeader(view, offset);
    const length = recordLength(indexLength, bodyLength);
    if (offset + length > bytes.length) break;
    offsets.push(offset);
    offset += length;
  }
  return offsets;
}

/** Makes both CRCs of the record at `offset` right, whatever its header and content say by now. */
export function writeRecordCrcs(bytes: Uint8Array, offset: number, salt: number): void {
  const view = viewOf(bytes);
  const { indexLength, bodyLength } = readRecordHeader(view, offset);
  const end = Math.min(bytes.length, offset + recordLength(indexLength, bodyLength));
  view.setUint32(offset + 40, crc32(bytes.subarray(offset + RECORD_HEADER_BYTES, end)), true);
  writeHeaderCrc(bytes, view, offset, salt, offset);
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
