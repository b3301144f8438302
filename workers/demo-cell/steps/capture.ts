import { lineBytes, type Planes } from "../../../core/capture/capture.js";
import type { JsonObject } from "../../../core/json/json.js";

/**
 * A height map as a capture head delivers it, made or recorded. It is raw bytes, little-endian, and each row is a scan
 * line.
 */
export interface Capture {
  width: number;
  lines: number;
  planes: Planes;
  xPitchMm: number;
  yPitchMm: number;
  xOriginMm: number;
  yOriginMm: number;
  /** The heights, [lines, width], of type `planes.height.dtype`. */
  height: Uint8Array;
  /** The luminance, [lines, width], of type `planes.luminance.dtype`; undefined without luminance. */
  luminance: Uint8Array | undefined;
  metadata: JsonObject;
}

/** The payload of `frame.lines`: the height rows of the batch, then its luminance rows. */
export function batchPayload(capture: Capture, firstLine: number, lineCount: number): Uint8Array {
  const bytes = lineBytes(capture.planes, capture.width);
  const endLine = firstLine + lineCount;
  const payload = new Uint8Array(lineCount * (bytes.height + bytes.luminance));
  payload.set(capture.height.subarray(firstLine * bytes.height, endLine * bytes.height));
  if (capture.luminance !== undefined) {
    const rows = capture.luminance.subarray(firstLine * bytes.luminance, endLine * bytes.luminance);
    payload.set(rows, lineCount * bytes.height);
  }
  return payload;
}

/** The raw codes of the height plane: element i is the point in column i % width of line floor(i / width). */
export function heightCodes(capture: Capture): Uint16Array | Int16Array | Int32Array | Float32Array {
  // Unaligned bytes are copied, for example those after an odd header.
  const { height } = capture;
  const aligned = height.byteOffset % 4 === 0 ? height : Uint8Array.prototype.slice.call(height);
  const { buffer, byteOffset, byteLength } = aligned;
  switch (capture.planes.height.dtype) {
    case "u16":
      return new Uint16Array(buffer, byteOffset, byteLength / 2);
    case "i16":
      return new Int16Array(buffer, byteOffset, byteLength / 2);
    case "i32":
      return new Int32Array(buffer, byteOffset, byteLength / 4);
    case "f32":
      return new Float32Array(buffer, byteOffset, byteLength / 4);
  }
}

/** Heights in mm, [lines, width] row-major; NaN where nothing was measured. */
export function heightsMm(capture: Capture): Float32Array {
  const codes = heightCodes(capture);
  const { scale_mm: scale, offset_mm: offset, invalid } = capture.planes.height;
  const zMm = new Float32Array(codes.length);
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] as number;
    zMm[i] = invalid.includes(code) ? Number.NaN : code * scale + offset;
  }
  return zMm;
}
