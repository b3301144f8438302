/**
 * A findings file, `<base>.findings`, has the columns of a sealed segment (finding-columns.ts). It can be deleted at any time:
 * then it is made again from its segment. Integers are little-endian. A sequence number is an f64.
 *
 * | offset | size | field | |
 * |---|---|---|---|
 * | 0 | 8 | magic | bytes `49 52 53 46 4e 44 53 31` ("IRSFNDS1") |
 * | 8 | 4 | format version | 2 |
 * | 12 | 4 | salt | that of the segment's header |
 * | 16 | 8 | base | sequence number of the segment's first record |
 * | 24 | 8 | last | sequence number of its last record |
 * | 32 | 8 | segment_bytes | size of the segment's file |
 * | 40 | 8 | low | when the first run ended, by their times: microseconds since the Unix epoch, an f64; infinity without runs |
 * | 48 | 8 | high | when the last one ended; minus infinity without runs |
 * | 56 | 36 | counts | nine: runs, checks, defects, settings, programs, texts, text_bytes, messages, message_bytes |
 * | 92 | 4 | figures_crc | CRC-32 of the figure columns, with their padding |
 * | 96 | 4 | details_crc | CRC-32 of the detail columns, with their padding |
 * | 100 | 4 | head_crc | CRC-32 of bytes 0 to 99 |
 * | 104 | … | the figure columns, in the order of FIGURE_COLUMNS, then zeros up to a multiple of 8 | |
 * | … | … | the detail columns, likewise | |
 *
 * The same segment gives the same bytes.
 */
import { crc32 } from "node:zlib";
import bin from "typed-binary";
import { COUNTS, type ColumnCounts, type TimeSpan } from "./finding-columns.js";
import type { BuiltColumns } from "./findings-builder.js";

const FINDINGS_FORMAT_VERSION = 2;
export const FINDINGS_HEAD_BYTES = 104;
const HEAD_CRC_OFFSET = 100;
/** "IRSF" and "NDS1", read as little-endian u32. */
const MAGIC_LOW = 0x46535249;
const MAGIC_HIGH = 0x3153444e;
const LITTLE = { endianness: "little" } as const;
const FINDINGS_NAME = /^(\d{16})\.findings$/;

const number = bin.f64Array(1);
const HEAD = bin.object({
  magicLow: bin.u32,
  magicHigh: bin.u32,
  version: bin.u32,
  salt: bin.u32,
  base: number,
  lastSequence: number,
  segmentBytes: number,
  lowUs: number,
  highUs: number,
  counts: bin.u32Array(COUNTS.length),
  figuresCrc: bin.u32,
  detailsCrc: bin.u32,
  headCrc: bin.u32,
});

/** The segment that a findings file belongs to. */
export interface FoundSegment {
  base: number;
  salt: number;
  lastSequence: number;
  segmentBytes: number;
}

export interface FindingsHead extends FoundSegment, TimeSpan {
  counts: ColumnCounts;
  figuresCrc: number;
  detailsCrc: number;
}

export function findingsName(base: number): string {
  return `${String(base).padStart(16, "0")}.findings`;
}

/** The base of a findings file's name; undefined for any other name. */
export function findingsBaseOf(name: string): number | undefined {
  const match = FINDINGS_NAME.exec(name);
  return match === null ? undefined : Number(match[1]);
}

export function encodeFindings(segment: FoundSegment, columns: BuiltColumns): Uint8Array {
  const { counts, figures, details, lowUs, highUs } = columns;
  const head = new Uint8Array(FINDINGS_HEAD_BYTES);
  HEAD.write(new bin.BufferWriter(head.buffer, LITTLE), {
    magicLow: MAGIC_LOW,
    magicHigh: MAGIC_HIGH,
    version: FINDINGS_FORMAT_VERSION,
    salt: segment.salt,
    base: Float64Array.of(segment.base),
    lastSequence: Float64Array.of(segment.lastSequence),
    segmentBytes: Float64Array.of(segment.segmentBytes),
    lowUs: Float64Array.of(lowUs),
    highUs: Float64Array.of(highUs),
    counts: Uint32Array.from(COUNTS, (name) => counts[name]),
    figuresCrc: crc32(figures),
    detailsCrc: crc32(details),
    headCrc: 0,
  });
  new DataView(head.buffer).setUint32(HEAD_CRC_OFFSET, crc32(head.subarray(0, HEAD_CRC_OFFSET)), true);
  return Buffer.concat([head, figures, details]);
}

/** The head of a findings file; null if it is damaged, or of another format or version. */
export function decodeFindingsHead(bytes: Uint8Array<ArrayBuffer>): FindingsHead | null {
  if (bytes.length < FINDINGS_HEAD_BYTES) return null;
  const head = HEAD.read(new bin.BufferReader(bytes.buffer, { ...LITTLE, byteOffset: bytes.byteOffset }));
  if (head.magicLow !== MAGIC_LOW || head.magicHigh !== MAGIC_HIGH || head.version !== FINDINGS_FORMAT_VERSION)
    return null;
  if (head.headCrc !== crc32(bytes.subarray(0, HEAD_CRC_OFFSET))) return null;
  const { salt, figuresCrc, detailsCrc } = head;
  const counts = Object.fromEntries(COUNTS.map((name, at) => [name, head.counts[at]])) as ColumnCounts;
  const [base, lastSequence, segmentBytes] = [head.base[0]!, head.lastSequence[0]!, head.segmentBytes[0]!];
  const [lowUs, highUs] = [head.lowUs[0]!, head.highUs[0]!];
  return { base, salt, lastSequence, segmentBytes, counts, lowUs, highUs, figuresCrc, detailsCrc };
}
