import { crc32 } from "node:zlib";
import { itemBytes, type SeriesAppend } from "../../core/capture.js";
import { type FileSystem, readFully } from "../../storage/file-system.js";
import { csvHeader, csvRoomBytes, encodeCsvRows } from "./csv-encoder.js";
import { damagedCapture, openStored } from "./stored-bytes.js";

/** A series as a task names it: where its bytes lie, and what they mean. */
export interface SeriesSource {
  path: string;
  channels: number;
  appends: readonly SeriesAppend[];
}

/** Where rows of a series begin in its CSV. */
export interface SeriesIndex {
  totalBytes: number;
  /** Byte offset of row `n * ROWS_PER_STRETCH`, the header before it; then the total. */
  offsets: Float64Array<ArrayBuffer>;
}

/** Rows that are written at a time: some megabytes with the most channels. */
export const ROWS_PER_STRETCH = 4_096;

export function rowsOfSeries({ appends }: Pick<SeriesSource, "appends">): number {
  return appends.reduce((sum, append) => sum + append.rows, 0);
}

/** Writes all of it once, for the sizes. Memory: one stretch of rows. @throws StorageError `capture_missing`, `capture_damaged` */
export async function indexSeries(fileSystem: FileSystem, source: SeriesSource): Promise<SeriesIndex> {
  const stretches = Math.ceil(rowsOfSeries(source) / ROWS_PER_STRETCH);
  const offsets = new Float64Array(stretches + 1);
  offsets[0] = csvHeader(source.channels).length;
  for (let nth = 0; nth < stretches; nth++) {
    const rows = await writeStretch(fileSystem, source, nth);
    offsets[nth + 1] = (offsets[nth] as number) + rows.length;
  }
  return { totalBytes: offsets[stretches] as number, offsets };
}

/** The CSV of one stretch of rows, without a header. @throws StorageError `capture_missing`, `capture_damaged` */
export async function writeStretch(
  fileSystem: FileSystem,
  source: SeriesSource,
  stretch: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const { channels, appends } = source;
  const firstRow = stretch * ROWS_PER_STRETCH;
  const endRow = Math.min(firstRow + ROWS_PER_STRETCH, rowsOfSeries(source));
  const out = new Uint8Array(csvRoomBytes(channels, endRow - firstRow));
  const file = await openStored(fileSystem, source.path);
  let length = 0;
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
      const isWhole = from === 0 && to === append.rows;
      if (count < values.length || (isWhole && crc32(values) !== append.crc32)) {
        throw damagedCapture(source.path, append.offset, "the bytes do not match their CRC");
      }
      length += encodeCsvRows(append, channels, from, values, out.subarray(length));
    }
  } finally {
    await file.close();
  }
  return out.slice(0, length);
}
