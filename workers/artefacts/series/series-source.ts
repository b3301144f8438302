import { crc32 } from "node:zlib";
import { itemBytes, type SeriesAppend } from "../../../core/capture/capture.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { readFully } from "../../../storage/disk/whole-files.js";
import { damagedCapture, openStored } from "../frame/stored-bytes.js";
import { csvHeader, csvRoomBytes, encodeCsvRows } from "./csv-encoder.js";

/** A series as a task names it: where its bytes lie and what they mean. */
export interface SeriesSource {
  path: string;
  channels: number;
  appends: readonly SeriesAppend[];
}

/** Where rows of a series begin in its CSV. */
export interface SeriesIndex {
  totalBytes: number;
  /** Byte offset of row `n * ROWS_PER_BLOCK`, the header included. The last item is the total. */
  offsets: Float64Array<ArrayBuffer>;
}

/** This many rows are written at a time. With the most channels these are some megabytes. */
export const ROWS_PER_BLOCK = 4_096;

export function rowsOfSeries({ appends }: Pick<SeriesSource, "appends">): number {
  return appends.reduce((sum, append) => sum + append.rows, 0);
}

/**
 * Writes the whole CSV once to learn its sizes, and verifies every append. Memory: one row block.
 *
 * @throws StorageError `capture_missing`, `capture_damaged`
 */
export async function indexSeries(fileSystem: FileSystem, source: SeriesSource): Promise<SeriesIndex> {
  const rowBlocks = Math.ceil(rowsOfSeries(source) / ROWS_PER_BLOCK);
  const offsets = new Float64Array(rowBlocks + 1);
  offsets[0] = csvHeader(source.channels).length;
  const begun = { crc32: 0 };
  for (let nth = 0; nth < rowBlocks; nth++) {
    const { length } = await encodeRowBlock(fileSystem, source, nth, begun);
    offsets[nth + 1] = (offsets[nth] as number) + length;
  }
  return { totalBytes: offsets[rowBlocks] as number, offsets };
}

/**
 * The CSV of one row block, without a header. An append that is not wholly in it is not verified.
 *
 * @throws StorageError `capture_missing`, `capture_damaged`
 */
export async function writeRowBlock(
  fileSystem: FileSystem,
  source: SeriesSource,
  rowBlock: number,
): Promise<Uint8Array<ArrayBuffer>> {
  return (await encodeRowBlock(fileSystem, source, rowBlock)).slice();
}

/** A thread's room for the text of a row block. The next row block uses it again. */
let room = new Uint8Array(0);

function rowBlockRoom({ channels }: SeriesSource): Uint8Array<ArrayBuffer> {
  const roomBytes = csvRoomBytes(channels, ROWS_PER_BLOCK);
  if (room.length < roomBytes) room = new Uint8Array(roomBytes);
  return room;
}

/**
 * @param begun CRC-32 of the bytes that the row blocks before, in order, have of the append that goes on in this one.
 *   Absent: they were not read
 * @returns the text, until the next one is encoded: a thread has one task at a time
 */
async function encodeRowBlock(
  fileSystem: FileSystem,
  source: SeriesSource,
  rowBlock: number,
  begun?: { crc32: number },
): Promise<Uint8Array<ArrayBuffer>> {
  const { channels, appends } = source;
  const firstRow = rowBlock * ROWS_PER_BLOCK;
  const endRow = firstRow + ROWS_PER_BLOCK;
  const file = await openStored(fileSystem, source.path);
  const out = rowBlockRoom(source);
  let lengthBytes = 0;
  let append0 = 0;
  try {
    for (const append of appends) {
      const from = Math.max(firstRow, append0) - append0;
      const to = Math.min(endRow, append0 + append.rows) - append0;
      append0 += append.rows;
      if (from >= to) continue;
      const rowBytes = channels * itemBytes(append.dtype);
      const values = new Uint8Array((to - from) * rowBytes);
      const count = await readFully(file, values, append.offset + from * rowBytes);
      if (count < values.length) {
        throw damagedCapture(source.path, append.offset, "the file ends within stored bytes");
      }
      const before = from === 0 ? 0 : begun?.crc32;
      if (before !== undefined) {
        const crc = crc32(values, before);
        if (to === append.rows && crc !== append.crc32) {
          throw damagedCapture(source.path, append.offset, "the bytes do not match their CRC");
        }
        if (begun !== undefined) begun.crc32 = crc;
      }
      lengthBytes += encodeCsvRows(append, channels, from, values, out.subarray(lengthBytes));
    }
  } finally {
    await file.close();
  }
  return out.subarray(0, lengthBytes);
}
