import { valuesOf } from "../json/closed-set.js";
import type { JsonObject } from "../json/json.js";

/** Where stored bytes lie: a slice of one of the run's two files, with the CRC-32 (zlib) of that slice. */
export interface Extent {
  offset: number;
  lengthBytes: number;
  crc32: number;
}

export const HEIGHT_DTYPE_MEANINGS = {
  u16: "unsigned integers of 16 bits.",
  i16: "signed integers of 16 bits.",
  i32: "signed integers of 32 bits.",
  f32: "IEEE 754 numbers of 32 bits.",
} as const;
export type HeightDtype = keyof typeof HEIGHT_DTYPE_MEANINGS;
export const HEIGHT_DTYPES = valuesOf(HEIGHT_DTYPE_MEANINGS);
export const LUMINANCE_DTYPE_MEANINGS = {
  u8: "unsigned integers of 8 bits.",
  u16: "unsigned integers of 16 bits.",
} as const;
export type LuminanceDtype = keyof typeof LUMINANCE_DTYPE_MEANINGS;
export const LUMINANCE_DTYPES = valuesOf(LUMINANCE_DTYPE_MEANINGS);
export const SERIES_DTYPES = ["f32", "f64", "i32"] as const;
export type SeriesDtype = (typeof SERIES_DTYPES)[number];

const ITEM_BYTES = { u8: 1, u16: 2, i16: 2, i32: 4, f32: 4, f64: 8 } as const;

export function itemBytes(dtype: HeightDtype | LuminanceDtype | SeriesDtype): number {
  return ITEM_BYTES[dtype];
}

/** Planes of a frame: `z_mm = raw * scale_mm + offset_mm`; `invalid` are raw codes of no measurement (NaN always is). */
export interface Planes {
  height: { dtype: HeightDtype; scale_mm: number; offset_mm: number; invalid: number[] };
  luminance?: { dtype: LuminanceDtype; bits: number };
}

/** Bytes of one line of a frame: all its height points, then all its luminance points. */
export function lineBytes(planes: Planes, width: number): { height: number; luminance: number } {
  return {
    height: width * itemBytes(planes.height.dtype),
    luminance: planes.luminance === undefined ? 0 : width * itemBytes(planes.luminance.dtype),
  };
}

/** One acknowledged batch of lines: in its extent all height rows, then all luminance rows. */
export interface LineBatch extends Extent {
  lineCount: number;
  /**
   * CRC-32 of the frame's height plane from its first row to the end of this batch: of the last batch, that of the whole plane: the
   * tag of a download, and what verifies a reading that passes over the luminance, which the extent's own CRC covers too.
   */
  heightCrc32: number;
}

/** The points of a frame, all or those that the filter keeps: enough to make any part of the PLY. */
export interface CloudArtefact {
  kind: "cloud";
  points: number;
  /** Points of every line, u32. */
  lineCounts: Extent;
  /** Bit (line x width + column), lowest first, of every point that the filter keeps; null: every point that was measured. */
  mask: Extent | null;
}

/** A PNG, whole. */
export interface PictureArtefact {
  kind: "picture";
  file: Extent;
}

/** Where the rows of a series lie in its CSV. */
export interface CsvArtefact {
  kind: "csv";
  totalBytes: number;
  /** Byte offset of every row block, and the total behind them, f64. */
  offsets: Extent;
}

/** It was tried, and is not to be had: never offered. */
export interface FailedArtefact {
  kind: "failed";
  code: string;
  message: string;
}

export type StoredArtefact = CloudArtefact | PictureArtefact | CsvArtefact;
/** With the time of its record. */
export type Recorded<A> = A & { atUs: number };

/** What processing has made of a frame, by format; absent: not yet. The extents are of the run's capture file. */
export interface FrameArtefacts {
  "raw.ply"?: Recorded<CloudArtefact | FailedArtefact>;
  png?: Recorded<PictureArtefact | FailedArtefact>;
  "luminance.png"?: Recorded<PictureArtefact | FailedArtefact>;
  ply?: Recorded<CloudArtefact | FailedArtefact>;
}

/** Formats of a frame that processing makes. */
export type ProcessedFormat = keyof FrameArtefacts;

/** `open` takes lines; `incomplete` was open when its run ended: it stays listed, without formats. */
export type FrameStatus = "open" | "complete" | "incomplete";

export interface FrameState {
  id: string;
  stepIndex: number;
  sessionId: string;
  frameType: string;
  /** Points a line. */
  width: number;
  /** Lines as frame.begin declared them; 0 when not known then. */
  declaredLines: number;
  /** Lines stored so far; all of the frame once it is complete. */
  lines: number;
  planes: Planes;
  xPitchMm: number;
  yPitchMm: number;
  xOriginMm: number;
  yOriginMm: number;
  sequenceNumber: number;
  sensorId: string | null;
  jointPositions: number[] | null;
  tcpPosition: JsonObject | null;
  captureTimestampUs: number;
  metadata: JsonObject | null;
  /** In order, without holes: batch n starts at the line where n - 1 ended. Extents of the run's capture file. */
  batches: LineBatch[];
  status: FrameStatus;
  /** Commit time of frame.end; null before, and for an incomplete frame. */
  completedAtUs: number | null;
  /** Absent before anything was made. */
  artefacts?: FrameArtefacts;
}

/** One append to a step's measurement series: rows x channels values, row-major; an extent of the run's capture file. */
export interface SeriesAppend extends Extent {
  rows: number;
  firstTimestampUs: number;
  samplePeriodUs: number;
  dtype: SeriesDtype;
  valueScale: number | null;
  valueOffset: number | null;
  invalid: number[];
}

export interface SeriesState {
  stepIndex: number;
  channels: number;
  appends: SeriesAppend[];
  /** Commit time of what made it whole (step.finish or the run's end); null while it takes appends. */
  completedAtUs: number | null;
  /** Absent before it was made. */
  csv?: Recorded<CsvArtefact | FailedArtefact>;
}
