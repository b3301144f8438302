import type { SeriesDtype } from "../../../core/capture/capture.js";
import { parseTimeUs } from "../../../core/timestamps.js";
import { type CsvAppend, csvRoomBytes, encodeCsvRows } from "../../../workers/artefacts/series/csv-encoder.js";

export const START_US = parseTimeUs("2026-11-21T20:38:25.999998Z") as number;

/** Rows from `START_US` on. */
export function append(dtype: SeriesDtype, fields: Partial<CsvAppend> = {}): CsvAppend {
  return {
    dtype,
    firstTimestampUs: START_US,
    samplePeriodUs: 1,
    valueScale: null,
    valueOffset: null,
    invalid: [],
    ...fields,
  };
}

/** The rows of the CSV, without its header. */
export function rowsOf(one: CsvAppend, channels: number, values: ArrayLike<number>, firstRow = 0): string {
  const arrays = { f32: Float32Array, f64: Float64Array, i32: Int32Array };
  const typed = arrays[one.dtype].from(values);
  const out = new Uint8Array(csvRoomBytes(channels, values.length / channels));
  const end = encodeCsvRows(one, channels, firstRow, new Uint8Array(typed.buffer), out);
  return Buffer.from(out.buffer, 0, end).toString("latin1");
}
