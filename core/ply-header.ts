import type { Planes } from "./capture.js";

/** Bytes of a vertex: x, y and z as f32, and a byte of intensity where there is luminance. */
export function vertexBytes(planes: Planes): number {
  return planes.luminance === undefined ? 12 : 13;
}

/** A binary little-endian PLY up to its first vertex (decisions.md, Captures). */
export function plyHeader(frameId: string, planes: Planes, points: number, isFiltered: boolean): Uint8Array {
  const filter = isFiltered
    ? "filter statistical outlier removal, 20 neighbours, ratio 2.0"
    : "filter none: every point that was measured";
  const lines = [
    "ply",
    "format binary_little_endian 1.0",
    `comment frame ${frameId}, units mm, ${filter}`,
    `element vertex ${points}`,
    "property float x",
    "property float y",
    "property float z",
    ...(planes.luminance === undefined ? [] : ["property uchar intensity"]),
    "end_header",
  ];
  return Buffer.from(`${lines.join("\n")}\n`, "latin1");
}
