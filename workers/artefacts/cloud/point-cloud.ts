/**
 * Binary little-endian PLY of a frame's points in scan order. Its size follows from the number of points in each
 * line, and any part of the file can be made from the lines that it covers.
 */
import { itemBytes, type Planes } from "../../../core/capture/capture.js";
import { vertexBytes } from "../../../core/capture/ply-header.js";
import type { GridGeometry } from "../filter/grid-layout.js";
import { heightDecoder, heightParameters } from "../frame/height-decoder.js";
import { blockReader, type LineSource, lineReader } from "../frame/line-blocks.js";
import type { KernelMemory } from "../kernel-memory.js";

const INTENSITY_BITS = 8;
/** Packing stores 16 bytes for a vertex of 12 or 13. */
const STORE_BYTES = 16;

export interface CloudSource {
  planes: Planes;
  geometry: GridGeometry;
  heights: LineSource;
  luminance: LineSource;
  /** Bit (line x width + column), lowest first, of every point that is in the cloud; null for all points. */
  mask: Uint8Array | null;
  /** Index in the whole mask of the first bit in `mask`; a multiple of 8. */
  maskFirstBit?: number;
  /** Bytes of raw heights that are in the memory at a time. */
  blockBytes?: number;
}

/** Counts the points of each line. */
export async function countCloudPoints(
  memory: KernelMemory,
  { planes: { height }, geometry: { width, lines }, heights }: Pick<CloudSource, "planes" | "geometry" | "heights">,
): Promise<Uint32Array<ArrayBuffer>> {
  const counts = new Uint32Array(lines);
  const decode = heightDecoder(memory, height);
  const rawLines = lineReader(memory, itemBytes(height.dtype) * width, lines, heights);
  const zsAt = memory.allocate(4 * width);
  await rawLines(0, lines, (line, rawAt) => {
    decode(rawAt, width, zsAt);
    counts[line] = memory.kernels.countPoints(zsAt, width);
  });
  return counts;
}

/** Where packed vertices are in the memory. */
export interface PackedCloud {
  at: number;
  lengthBytes: number;
}

/**
 * Packs the vertices of some lines, without a header. It needs memory for all positions as vertices, their luminance, a
 * block of raw lines, and the mask.
 */
export async function packCloud(
  memory: KernelMemory,
  source: CloudSource,
  firstLine: number,
  endLine: number,
): Promise<PackedCloud> {
  const { planes, geometry, mask, maskFirstBit = 0 } = source;
  const { width, xOriginMm, xPitchMm, yOriginMm, yPitchMm } = geometry;
  const lines = endLine - firstLine;
  const rawBlocks = blockReader(
    memory,
    itemBytes(planes.height.dtype) * width,
    lines,
    source.heights,
    source.blockBytes,
  );
  const xsAt = memory.allocate(4 * width);
  const { type, transform } = heightParameters(memory, planes.height);
  const maskAt = mask === null ? 0 : memory.allocate(mask.length);
  if (mask !== null) memory.bytes(maskAt, mask.length).set(mask);
  const lights = await layOutLuminance(memory, source, firstLine, endLine);
  const at = memory.allocate(lines * width * vertexBytes(planes) + STORE_BYTES);
  const xs = memory.singles(xsAt, width);
  for (let column = 0; column < width; column++) xs[column] = xOriginMm + column * xPitchMm;
  let lengthBytes = 0;
  await rawBlocks(firstLine, lines, (done, taken, rawAt) => {
    const first = firstLine + done;
    const place = [xsAt, yOriginMm, yPitchMm, first, taken, width, maskAt, first * width - maskFirstBit] as const;
    const light = [lights.at + done * lights.lineBytes, lights.shift] as const;
    lengthBytes += memory.kernels.packLines(type, rawAt, ...transform, ...place, ...light, at + lengthBytes);
  });
  return { at, lengthBytes };
}

/** Luminance as it is stored. Without luminance `at` and `lineBytes` are 0. `packLines` says what `shift` means. */
interface Lights {
  at: number;
  lineBytes: number;
  shift: number;
}

async function layOutLuminance(
  memory: KernelMemory,
  { planes: { luminance }, geometry: { width }, luminance: source }: CloudSource,
  firstLine: number,
  endLine: number,
): Promise<Lights> {
  if (luminance === undefined) return { at: 0, lineBytes: 0, shift: -1 };
  const lineBytes = itemBytes(luminance.dtype) * width;
  const at = memory.allocate((endLine - firstLine) * lineBytes);
  await source(firstLine, endLine - firstLine, at);
  return { at, lineBytes, shift: luminance.dtype === "u8" ? -1 : Math.max(0, luminance.bits - INTENSITY_BITS) };
}
