import { valuesOf } from "../json/closed-set.js";
import { LIMITS } from "../limits.js";

export const FILE_TYPE_MEANINGS = {
  pointcloud: "points in space, such as a PLY.",
  image: "a picture, such as a height map or a luminance picture.",
  array: "raw sensor data as an array, such as an NPY.",
  measurement: "a measurement series, such as the CSV of a sweep.",
  report: "a document for people or other systems. Retention never removes it.",
} as const;
export type FileType = keyof typeof FILE_TYPE_MEANINGS;
export const FILE_TYPES = valuesOf(FILE_TYPE_MEANINGS);

export const FRAME_FORMAT_MEANINGS = {
  npy: "the raw heights, as the sensor gave them.",
  ply: "the point cloud in millimetres, without outliers.",
  "raw.ply": "the point cloud in millimetres, with every point that was measured.",
  png: "the height map as a 16-bit greyscale picture.",
  "luminance.png": "the luminance as an 8-bit greyscale picture; only of a frame that has luminance.",
} as const;
export type FrameFormat = keyof typeof FRAME_FORMAT_MEANINGS;
export const FRAME_FORMATS = valuesOf(FRAME_FORMAT_MEANINGS);

/** What a frame offers for download: the formats of the manifest, and a preview, which is not in it. */
export const OFFERED_FORMAT_MEANINGS = {
  ...FRAME_FORMAT_MEANINGS,
  "preview.png": "the height map as a small picture in false colours. It is not among the run's files.",
} as const;
export type OfferedFormat = keyof typeof OFFERED_FORMAT_MEANINGS;
export const OFFERED_FORMATS = valuesOf(OFFERED_FORMAT_MEANINGS);

/** Manifest type and MIME type of each format of a frame. */
export const FORMAT_TYPES: Record<FrameFormat, { type: FileType; contentType: string }> = {
  npy: { type: "array", contentType: "application/octet-stream" },
  ply: { type: "pointcloud", contentType: "application/x-ply" },
  "raw.ply": { type: "pointcloud", contentType: "application/x-ply" },
  png: { type: "image", contentType: "image/png" },
  "luminance.png": { type: "image", contentType: "image/png" },
};

export function contentTypeOf(format: OfferedFormat): string {
  return format === "preview.png" ? "image/png" : FORMAT_TYPES[format].contentType;
}

/** The path at which a frame offers the format, below its own. */
export function formatPath(format: OfferedFormat): string {
  return format === "preview.png" ? format : `file.${format}`;
}

/** Manifest type and MIME type of the CSV of a step's series. */
export const SWEEP_TYPE: { type: FileType; contentType: string } = { type: "measurement", contentType: "text/csv" };

export function frameFileName(frameId: string, format: OfferedFormat): string {
  return `frame-${frameId}.${format}`;
}

export function sweepFileName(stepIndex: number): string {
  return `step-${stepIndex}-cl_sweep.csv`;
}

const FRAME_FILE = /^frame-[0-9a-fA-F-]{36}\.(?:npy|ply|raw\.ply|png|luminance\.png)$/;
const SWEEP_FILE = /^step-\d+-cl_sweep\.csv$/;

/** What is allowed instead of this file name; undefined when the name is allowed. */
export function fileNameFault(name: string): string | undefined {
  // Characters are code points, as in all texts of messages. The first test is cheap: a code point is at most two units of a string.
  const tooLong = name.length > 2 * LIMITS.nameCharacters || [...name].length > LIMITS.nameCharacters;
  if (name.length === 0 || tooLong) return `1 to ${LIMITS.nameCharacters} characters`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  if (/[/\\\u0000-\u001f\u007f-\u009f]/.test(name)) return "no '/', '\\' or control characters";
  if (name === "." || name === "..") return "not '.' or '..'";
  if (!name.isWellFormed()) return "well-formed Unicode";
  if (FRAME_FILE.test(name) || SWEEP_FILE.test(name)) return "not a name that the service gives to captures";
  return undefined;
}
