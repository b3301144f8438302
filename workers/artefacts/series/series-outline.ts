import { crc32 } from "node:zlib";
import { itemBytes, type SeriesAppend } from "../../../core/capture/capture.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { readFullySync } from "../../../storage/disk/whole-files.js";
import { damagedCapture, openStoredSync } from "../frame/stored-bytes.js";
import type { SeriesSource } from "./series-source.js";

/** What a plot of a series needs, however many samples the series has. */
export interface SeriesOutline {
  /** From the first sample to the last. */
  lengthUs: number;
  /** The least and the greatest value of each channel in each bucket, [channel][bucket]. NaN: nothing was measured. */
  minima: Float64Array[];
  maxima: Float64Array[];
  /** Whether the bucket has samples, measured or not. */
  hasSamples: Uint8Array;
}

/** So many bytes are read at a time, or one row. */
const CHUNK_BYTES = 256 * 1024;

/**
 * Divides a series into buckets of equal time, and finds the extremes of each. So no peak is lost. All bytes are
 * verified. Memory: one chunk.
 *
 * @throws StorageError `capture_missing`, `capture_damaged`
 */
export function outlineSeries(fileSystem: FileSystem, source: SeriesSource, buckets: number): SeriesOutline {
  const { path, channels, appends } = source;
  const newColumn = () => new Float64Array(buckets).fill(Number.NaN);
  const minima = Array.from({ length: channels }, newColumn);
  const maxima = Array.from({ length: channels }, newColumn);
  const hasSamples = new Uint8Array(buckets);
  const [begin, end] = timesOf(appends);
  const bucketsPerUs = end > begin ? buckets / (end - begin) : 0;
  const file = openStoredSync(fileSystem, path);
  try {
    for (const append of appends) {
      const rowBytes = channels * itemBytes(append.dtype);
      const rowsPerChunk = Math.max(1, Math.floor(CHUNK_BYTES / rowBytes));
      const measured = decoder(append);
      let crc = 0;
      for (let row = 0; row < append.rows; row += rowsPerChunk) {
        const bytes = new Uint8Array(Math.min(rowsPerChunk, append.rows - row) * rowBytes);
        if (readFullySync(file, bytes, append.offset + row * rowBytes) < bytes.length)
          throw damagedCapture(path, append.offset, "the file ends within stored bytes");
        crc = crc32(bytes, crc);
        const values = rawValues(append, bytes);
        for (let at = 0; at < values.length; at++) {
          const nth = row + Math.trunc(at / channels);
          const timeUs = append.firstTimestampUs + Math.round(nth * append.samplePeriodUs);
          const bucket = Math.min(buckets - 1, Math.max(0, Math.trunc((timeUs - begin) * bucketsPerUs)));
          hasSamples[bucket] = 1;
          const value = measured(values[at] as number);
          if (!Number.isFinite(value)) continue;
          const [low, high] = [minima[at % channels] as Float64Array, maxima[at % channels] as Float64Array];
          if (!((low[bucket] as number) <= value)) low[bucket] = value;
          if (!((high[bucket] as number) >= value)) high[bucket] = value;
        }
      }
      if (crc !== append.crc32) throw damagedCapture(path, append.offset, "the bytes do not match their CRC");
    }
  } finally {
    file.closeSync();
  }
  return { lengthUs: Math.max(0, end - begin), minima, maxima, hasSamples };
}

/** Times of the first sample and the last. */
function timesOf(appends: readonly SeriesAppend[]): [begin: number, end: number] {
  let [begin, end] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { firstTimestampUs, samplePeriodUs, rows } of appends) {
    if (rows === 0) continue;
    begin = Math.min(begin, firstTimestampUs);
    end = Math.max(end, firstTimestampUs + Math.round((rows - 1) * samplePeriodUs));
  }
  return [begin, end];
}

function rawValues({ dtype }: SeriesAppend, { buffer }: Uint8Array<ArrayBuffer>) {
  if (dtype === "i32") return new Int32Array(buffer);
  return dtype === "f64" ? new Float64Array(buffer) : new Float32Array(buffer);
}

/** Gives NaN for a code that means no measurement. */
function decoder({ dtype, invalid, valueScale, valueOffset }: SeriesAppend): (raw: number) => number {
  const codes = new Set(dtype === "f32" ? invalid.map(Math.fround) : invalid);
  const [scale, offset] = [valueScale ?? 1, valueOffset ?? 0];
  return (raw) => (codes.has(raw) ? Number.NaN : raw * scale + offset);
}
