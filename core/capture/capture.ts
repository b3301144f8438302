import { valuesOf } from "../json/closed-set.js";
import type { JsonObject } from "../json/json.js";

/** Where stored bytes lie: an extent of one of the run's two files, with its CRC-32 (zlib). */
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

/** Planes of a frame: `z_mm = raw * scale_mm + offset_mm`. `invalid` lists the raw codes for "no measurement"; NaN always means that. */
export interface Planes {
  height: { dtype: HeightDtype; scale_mm: number; offset_mm: number; invalid: number[] };
  luminance?: { dtype: LuminanceDtype; bits: number };
}

/** Bytes of one line of a frame, by plane. */
export function lineBytes(planes: Planes, width: number): { height: number; luminance: number } {
  return {
    height: width * itemBytes(planes.height.dtype),
    luminance: planes.luminance === undefined ? 0 : width * itemBytes(planes.luminance.dtype),
  };
}

/** One acknowledged batch of lines. Its extent holds all height rows, then all luminance rows. */
export interface LineBatch extends Extent {
  lineCount: number;
  /**
   * CRC-32 of the frame's height plane from its first row to the end of this batch. The last batch's value covers the whole plane: it is the
   * tag of a download, and it verifies a reader that skips the luminance (the extent's own CRC covers both planes).
   */
  heightCrc32: number;
}

/** The points of a frame, all of them or those that the filter keeps. Any part of the PLY can be built from it. */
export interface CloudArtefact {
  kind: "cloud";
  points: number;
  /** Count of points of each line, u32. */
  lineCounts: Extent;
  /** One bit for each point, at line x width + column, lowest bit first: set when the filter keeps the point. Null: every measured point is kept. */
  mask: Extent | null;
}

/** A whole PNG file. */
export interface PictureArtefact {
  kind: "picture";
  file: Extent;
  /** The preview, a whole PNG file too. Only a height map has one. */
  preview?: Extent;
}

/** Where the rows of a series lie in its CSV. */
export interface CsvArtefact {
  kind: "csv";
  totalBytes: number;
  /** Byte offset of each row block in the CSV, then the CSV's total bytes, f64. */
  offsets: Extent;
}

/** An artefact that could not be made. It is never offered. */
export interface FailedArtefact {
  kind: "failed";
  code: string;
  message: string;
}

export type StoredArtefact = CloudArtefact | PictureArtefact | CsvArtefact;
/** An artefact with the time of its record. */
export type Recorded<A> = A & { atUs: number };

/** What processing has made of a frame, by format; an absent format has not been made yet. The extents lie in the run's capture file. */
export interface FrameArtefacts {
  "raw.ply"?: Recorded<CloudArtefact | FailedArtefact>;
  png?: Recorded<PictureArtefact | FailedArtefact>;
  "luminance.png"?: Recorded<PictureArtefact | FailedArtefact>;
  ply?: Recorded<CloudArtefact | FailedArtefact>;
}

/** Formats of a frame that processing makes. */
export type ProcessedFormat = keyof FrameArtefacts;

/** An `open` frame accepts lines. An `incomplete` one was open when its run ended: it stays listed, without formats. */
export type FrameStatus = "open" | "complete" | "incomplete";

export interface FrameState {
  id: string;
  stepIndex: number;
  sessionId: string;
  frameType: string;
  /** Points of each line. */
  width: number;
  /** Lines that frame.begin declared; 0 when the producer did not know them. */
  declaredLines: number;
  /** Lines stored so far. */
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
  /** In line order, without gaps: each batch starts where the one before ended. The extents lie in the run's capture file. */
  batches: LineBatch[];
  status: FrameStatus;
  /** Commit time of frame.end; null until then, and for an incomplete frame. */
  completedAtUs: number | null;
  /** Absent until something was made. */
  artefacts?: FrameArtefacts;
}

/** One append to a step's measurement series: rows x channels values, row by row, in an extent of the run's capture file. */
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
  /** Commit time of the step.finish or the run's end that completed it; null while it accepts appends. */
  completedAtUs: number | null;
  /** Absent until it was made. */
  csv?: Recorded<CsvArtefact | FailedArtefact>;
}
