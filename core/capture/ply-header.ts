import type { FrameState, Planes } from "./capture.js";

export type CloudFrame = Pick<FrameState, "id" | "planes" | "xPitchMm" | "yPitchMm" | "xOriginMm" | "yOriginMm">;

/** Bytes of a vertex: x, y and z as f32, and one byte of intensity if the frame has luminance. */
export function vertexBytes(planes: Planes): number {
  return planes.luminance === undefined ? 12 : 13;
}

/**
 * The header of a binary little-endian PLY. Its comments give the offsets and scales that turned columns, lines and raw
 * heights into vertices, because an f32 far from zero is coarser than the frame.
 */
export function plyHeader(frame: CloudFrame, points: number, isFiltered: boolean): Uint8Array {
  const { id, planes, xPitchMm, yPitchMm, xOriginMm, yOriginMm } = frame;
  const { scale_mm: zScaleMm, offset_mm: zOffsetMm } = planes.height;
  const filter = isFiltered
    ? "filter statistical outlier removal, 20 neighbours, ratio 2.0"
    : "filter none: every point that was measured";
  const lines = [
    "ply",
    "format binary_little_endian 1.0",
    `comment frame ${id}, units mm, ${filter}`,
    `comment offset_mm ${xOriginMm} ${yOriginMm} ${zOffsetMm}`,
    `comment scale_mm ${xPitchMm} ${yPitchMm} ${zScaleMm}`,
    "comment a float has 24 bits: beyond 2^23 times its scale_mm a coordinate loses steps, which the NPY has",
    `element vertex ${points}`,
    "property float x",
    "property float y",
    "property float z",
    ...(planes.luminance === undefined ? [] : ["property uchar intensity"]),
    "end_header",
  ];
  return Buffer.from(`${lines.join("\n")}\n`, "latin1");
}
