/**
 * A hint file, `<base>.hint`, lies beside a sealed segment. It has what a start needs of the segment, so that the start
 * need not read it. A hint file can be deleted at any time: then it is made again from its segment. All integers are
 * little-endian. A time or a sequence number is an f64.
 *
 * | offset | size | field | |
 * |---|---|---|---|
 * | 0 | 8 | magic | bytes `49 52 53 48 49 4e 54 31` ("IRSHINT1") |
 * | 8 | 4 | format version | 1 |
 * | 12 | 4 | salt | that of the segment's header |
 * | 16 | 8 | base | sequence number of the segment's first record |
 * | 24 | 8 | last | sequence number of its last record |
 * | 32 | 8 | segment_bytes | size of the segment's file |
 * | 40 | 4 | segment_crc | CRC-32 of the segment's file |
 * | 44 | 4 | n | count of entries |
 * | 48 | 4 | index_bytes | bytes of all index sections |
 * | 52 | 4 | body_bytes | bytes of all bodies |
 * | 56 | 4 | content_crc | CRC-32 of everything after the head |
 * | 60 | 4 | head_crc | CRC-32 of bytes 0 to 59 |
 * | 64 | 8 n | sequence number of each record, ascending | |
 * | … | 8 n | its time in microseconds since the Unix epoch | |
 * | … | 4 n | its offset in the segment | |
 * | … | 4 n | its length in the segment | |
 * | … | 4 n | where its index section ends, counted from the first one's start | |
 * | … | 4 n | where its body ends, likewise; an entry without a body ends where the one before does | |
 * | … | 2 n | its type | |
 * | … | index_bytes | the index sections | |
 * | … | body_bytes | the bodies | |
 *
 * The owner of the records says which records have an entry, and which entries have a body: recovery/hint-choice.ts.
 * The first entry is the segment's opening state, with its time and nothing else.
 *
 * Example: a segment of base 5 and salt 0x12345678 ends with record 7. It has 4,096 bytes and the CRC 0xcafe. The time
 * of its opening state is 1,000. The hint has one other entry: record 6, of type 16 and time 2,000. That record is at
 * offset 112, is 64 bytes long, and has the index section `01 02 03` and the body `"log"`:
 *
 *     49525348494e5431 01000000 78563412 0000000000001440 0000000000001c40 000000000000b040 feca0000 02000000 03000000 03000000
 *     344d06f8 eaccd589 0000000000001040 0000000000001840 0000000000408f40 0000000000409f40 40000000 70000000 30000000 40000000
 *     00000000 03000000 00000000 03000000 0100 1000 010203 6c6f67
 */
import { crc32 } from "node:zlib";
import bin from "typed-binary";

export const HINT_FORMAT_VERSION = 1;
const HEAD_BYTES = 64;
const HEAD_CRC_OFFSET = 60;
const CONTENT_CRC_OFFSET = 56;
/** "IRSH" and "INT1", read as little-endian u32. */
const MAGIC_LOW = 0x48535249;
const MAGIC_HIGH = 0x31544e49;
/** Bytes of one entry in all columns together. */
const COLUMN_BYTES = 34;
const NOTHING = new Uint8Array(0);
const LITTLE = { endianness: "little" } as const;
const HINT_NAME = /^(\d{16})\.hint$/;

// typed-binary has no f64 alone.
const number = bin.f64Array(1);
const HEAD = bin.object({
  magicLow: bin.u32,
  magicHigh: bin.u32,
  version: bin.u32,
  salt: bin.u32,
  base: number,
  lastSequence: number,
  segmentBytes: number,
  segmentCrc: bin.u32,
  count: bin.u32,
  indexBytes: bin.u32,
  bodyBytes: bin.u32,
  contentCrc: bin.u32,
  headCrc: bin.u32,
});

/**
 * The entries of a hint before their index sections and bodies, field by field: typed-binary reads a whole column in
 * one go.
 */
function columnsOf(count: number) {
  return bin.object({
    sequences: bin.f64Array(count),
    timesUs: bin.f64Array(count),
    offsets: bin.u32Array(count),
    lengths: bin.u32Array(count),
    indexEnds: bin.u32Array(count),
    bodyEnds: bin.u32Array(count),
    types: bin.u16Array(count),
  });
}

/** The segment that a hint belongs to, as its head says. */
export interface HintedSegment {
  base: number;
  salt: number;
  lastSequence: number;
  segmentBytes: number;
  segmentCrc: number;
}

/** A record of the segment that a start needs. */
export interface HintEntry {
  type: number;
  sequence: number;
  timeUs: number;
  offset: number;
  /** Length of the whole record in the segment. */
  length: number;
  index: Uint8Array;
  /** Empty where a start does not need the record's body. */
  body: Uint8Array;
}

/** The bytes are not those of an intact hint file. The message is for people. */
export class HintDamageError extends Error {
  override name = "HintDamageError";
}

export function hintName(base: number): string {
  return `${String(base).padStart(16, "0")}.hint`;
}

/** The base of a hint's file name; undefined for any other name. */
export function hintBaseOf(name: string): number | undefined {
  const match = HINT_NAME.exec(name);
  return match === null ? undefined : Number(match[1]);
}

export function encodeHint(segment: HintedSegment, entries: readonly HintEntry[]): Uint8Array {
  const indexBytes = entries.reduce((sum, { index }) => sum + index.length, 0);
  const bodyBytes = entries.reduce((sum, { body }) => sum + body.length, 0);
  const columns = {
    sequences: Float64Array.from(entries, ({ sequence }) => sequence),
    timesUs: Float64Array.from(entries, ({ timeUs }) => timeUs),
    offsets: Uint32Array.from(entries, ({ offset }) => offset),
    lengths: Uint32Array.from(entries, ({ length }) => length),
    indexEnds: endsOf(entries.map(({ index }) => index)),
    bodyEnds: endsOf(entries.map(({ body }) => body)),
    types: Uint16Array.from(entries, ({ type }) => type),
  };
  const indexesAt = HEAD_BYTES + COLUMN_BYTES * entries.length;
  const bytes = new Uint8Array(indexesAt + indexBytes + bodyBytes);
  const writer = new bin.BufferWriter(bytes.buffer, LITTLE);
  HEAD.write(writer, {
    magicLow: MAGIC_LOW,
    magicHigh: MAGIC_HIGH,
    version: HINT_FORMAT_VERSION,
    salt: segment.salt,
    base: Float64Array.of(segment.base),
    lastSequence: Float64Array.of(segment.lastSequence),
    segmentBytes: Float64Array.of(segment.segmentBytes),
    segmentCrc: segment.segmentCrc,
    count: entries.length,
    indexBytes,
    bodyBytes,
    contentCrc: 0,
    headCrc: 0,
  });
  columnsOf(entries.length).write(writer, columns);
  let at = indexesAt;
  for (const part of [...entries.map(({ index }) => index), ...entries.map(({ body }) => body)]) {
    bytes.set(part, at);
    at += part.length;
  }
  const view = new DataView(bytes.buffer);
  view.setUint32(CONTENT_CRC_OFFSET, crc32(bytes.subarray(HEAD_BYTES)), true);
  view.setUint32(HEAD_CRC_OFFSET, crc32(bytes.subarray(0, HEAD_CRC_OFFSET)), true);
  return bytes;
}

/**
 * Verifies every byte of a hint file, and returns its head.
 *
 * @returns null for a hint of another format version
 * @throws HintDamageError
 */
export function verifyHint(bytes: Uint8Array): HintedSegment | null {
  if (bytes.length < HEAD_BYTES) throw new HintDamageError(`it has ${bytes.length} bytes, fewer than its head`);
  const head = readHead(bytes);
  if (head.magicLow !== MAGIC_LOW || head.magicHigh !== MAGIC_HIGH) throw new HintDamageError("it is no hint file");
  if (head.headCrc !== crc32(bytes.subarray(0, HEAD_CRC_OFFSET)))
    throw new HintDamageError("its head does not match its CRC");
  if (head.version !== HINT_FORMAT_VERSION) return null;
  if (head.contentCrc !== crc32(bytes.subarray(HEAD_BYTES)))
    throw new HintDamageError("its entries do not match their CRC");
  const { salt, segmentCrc } = head;
  return {
    ...{ base: head.base[0]!, salt, lastSequence: head.lastSequence[0]! },
    ...{ segmentBytes: head.segmentBytes[0]!, segmentCrc },
  };
}

/** Calls back with each entry of a hint that `verifyHint` approved. Index sections and bodies are views of its bytes. */
export function forEachHintEntry(bytes: Uint8Array, callback: (entry: HintEntry) => void): void {
  const { count, indexBytes } = readHead(bytes);
  const columns = columnsOf(count).read(readerOf(bytes, HEAD_BYTES));
  const { sequences, timesUs, offsets, lengths, indexEnds, bodyEnds, types } = columns;
  const indexesAt = HEAD_BYTES + COLUMN_BYTES * count;
  const bodiesAt = indexesAt + indexBytes;
  let indexAt = indexesAt;
  let bodyAt = bodiesAt;
  for (let at = 0; at < count; at++) {
    const indexEnd = indexesAt + indexEnds[at]!;
    const bodyEnd = bodiesAt + bodyEnds[at]!;
    callback({
      type: types[at]!,
      sequence: sequences[at]!,
      timeUs: timesUs[at]!,
      offset: offsets[at]!,
      length: lengths[at]!,
      index: bytes.subarray(indexAt, indexEnd),
      body: bodyAt === bodyEnd ? NOTHING : bytes.subarray(bodyAt, bodyEnd),
    });
    indexAt = indexEnd;
    bodyAt = bodyEnd;
  }
}

function readHead(bytes: Uint8Array) {
  return HEAD.read(readerOf(bytes, 0));
}

function readerOf(bytes: Uint8Array, offset: number) {
  return new bin.BufferReader(bytes.buffer as ArrayBuffer, { ...LITTLE, byteOffset: bytes.byteOffset + offset });
}

function endsOf(parts: readonly Uint8Array[]): Uint32Array {
  let end = 0;
  return Uint32Array.from(parts, ({ length }) => {
    end += length;
    return end;
  });
}
