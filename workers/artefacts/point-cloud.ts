/**
 * Binary little-endian PLY of a frame's points in scan order (decisions.md, Captures). The size is known as soon as the points of every line are
 * counted, and any part of the file is made from the lines that it covers.
 */
import { itemBytes, type Planes } from "../../core/capture.js";
import { vertexBytes } from "../../core/ply-header.js";
import type { GridGeometry } from "./grid-layout.js";
import { heightDecoder } from "./height-decoder.js";
import type { KernelMemory } from "./kernel-memory.js";
import type { LineSource } from "./line-blocks.js";

const INTENSITY_BITS = 8;

export interface CloudSource {
  planes: Planes;
  geometry: GridGeometry;
  heights: LineSource;
  luminance: LineSource;
  /** Bit (line x width + column), lowest first, of every point that is in the cloud; null for all points. */
  mask: Uint8Array | null;
  /** Bits of the whole mask before those in `mask`: a multiple of 8. */
  maskFirstBit?: number;
}

/** Points of the cloud in every line. */
export async function countCloudPoints(memory: KernelMemory, source: CloudSource): Promise<Uint32Array<ArrayBuffer>> {
  const { width, lines } = source.geometry;
  const counts = new Uint32Array(lines);
  const { decodeLine, zsAt, maskAt } = layOutLine(memory, source);
  for (let line = 0; line < lines; line++) {
    await decodeLine(line);
    counts[line] = memory.kernels.countPoints(zsAt, width, maskAt, line * width - (source.maskFirstBit ?? 0));
  }
  return counts;
}

/** The vertices of some lines, without a header. Memory: what is returned, twice, some lines, and the mask. */
export async function packCloud(
  memory: KernelMemory,
  source: CloudSource,
  firstLine: number,
  endLine: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const { planes, geometry } = source;
  const { width } = geometry;
  const { luminance } = planes;
  const { decodeLine, zsAt, maskAt } = layOutLine(memory, source);
  const xsAt = memory.allocate(4 * width);
  const scratchAt = memory.allocate(16);
  const intensitiesAt = luminance === undefined ? 0 : memory.allocate(width);
  const rawLightAt = luminance === undefined ? 0 : memory.allocate(itemBytes(luminance.dtype) * width);
  const outAt = memory.allocate((endLine - firstLine) * width * vertexBytes(planes) + 16);
  const xs = memory.singles(xsAt, width);
  for (let column = 0; column < width; column++) xs[column] = geometry.xOriginMm + column * geometry.xPitchMm;
  let bytes = 0;
  for (let line = firstLine; line < endLine; line++) {
    await decodeLine(line);
    if (luminance !== undefined) {
      await source.luminance(line, 1, luminance.dtype === "u8" ? intensitiesAt : rawLightAt);
      if (luminance.dtype === "u16") {
        const shift = Math.max(0, luminance.bits - INTENSITY_BITS);
        memory.kernels.mapLuminance(rawLightAt, width, shift, intensitiesAt);
      }
    }
    const y = geometry.yOriginMm + line * geometry.yPitchMm;
    bytes += memory.kernels.packPoints(
      xsAt,
      y,
      zsAt,
      width,
      maskAt,
      line * width - (source.maskFirstBit ?? 0),
      intensitiesAt,
      scratchAt,
      outAt + bytes,
    );
  }
  return memory.copyOf(outAt, bytes);
}

function layOutLine(memory: KernelMemory, { planes, geometry, heights, mask }: CloudSource) {
  const decode = heightDecoder(memory, planes.height);
  const rawAt = memory.allocate(itemBytes(planes.height.dtype) * geometry.width);
  const zsAt = memory.allocate(4 * geometry.width);
  const maskAt = mask === null ? 0 : memory.allocate(mask.length);
  if (mask !== null) memory.bytes(maskAt, mask.length).set(mask);
  const decodeLine = async (line: number): Promise<void> => {
    await heights(line, 1, rawAt);
    decode(rawAt, geometry.width, zsAt);
  };
  return { decodeLine, zsAt, maskAt };
}
