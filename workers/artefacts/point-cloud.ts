/**
 * Binary little-endian PLY of a frame's points in scan order (decisions.md, Captures). The size is known as soon as the points of every line are
 * counted, and any part of the file is made from the lines that it covers.
 */
import { itemBytes, type Planes } from "../../core/capture.js";
import { vertexBytes } from "../../core/ply-header.js";
import type { GridGeometry } from "./grid-layout.js";
import { heightDecoder } from "./height-decoder.js";
import type { KernelMemory } from "./kernel-memory.js";
import { type LineSource, lineReader } from "./line-blocks.js";

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
  /** Bits of the whole mask before those in `mask`: a multiple of 8. */
  maskFirstBit?: number;
}

/** Points of the cloud in every line. */
export async function countCloudPoints(memory: KernelMemory, source: CloudSource): Promise<Uint32Array<ArrayBuffer>> {
  const { width, lines } = source.geometry;
  const counts = new Uint32Array(lines);
  const { rawLines, decode, zsAt, maskAt } = layOutLines(memory, source, lines);
  await rawLines(0, lines, (line, rawAt) => {
    decode(rawAt, width, zsAt);
    counts[line] = memory.kernels.countPoints(zsAt, width, maskAt, line * width - (source.maskFirstBit ?? 0));
  });
  return counts;
}

/** Vertices in the memory. */
export interface PackedCloud {
  at: number;
  lengthBytes: number;
}

/**
 * The vertices of some lines, without a header. Memory: the room of all positions, a byte for each where there is luminance, a block of raw
 * lines, and the mask.
 */
export async function packCloud(
  memory: KernelMemory,
  source: CloudSource,
  firstLine: number,
  endLine: number,
): Promise<PackedCloud> {
  const { planes, geometry } = source;
  const { width } = geometry;
  const lines = endLine - firstLine;
  const { rawLines, decode, zsAt, maskAt } = layOutLines(memory, source, lines);
  const intensities = await layOutIntensities(memory, source, firstLine, endLine);
  const xsAt = memory.allocate(4 * width);
  const scratchAt = memory.allocate(16);
  const at = memory.allocate(lines * width * vertexBytes(planes) + STORE_BYTES);
  const xs = memory.singles(xsAt, width);
  for (let column = 0; column < width; column++) xs[column] = geometry.xOriginMm + column * geometry.xPitchMm;
  const packShorts = shortPacker(memory, planes.height);
  let lengthBytes = 0;
  await rawLines(firstLine, lines, (nth, rawAt) => {
    const line = firstLine + nth;
    const yMm = geometry.yOriginMm + line * geometry.yPitchMm;
    const bit = line * width - (source.maskFirstBit ?? 0);
    const lights = intensities === 0 ? 0 : intensities + nth * width;
    const to = at + lengthBytes;
    if (packShorts !== null) lengthBytes += packShorts(rawAt, xsAt, yMm, width, maskAt, bit, lights, to);
    else {
      decode(rawAt, width, zsAt);
      lengthBytes += memory.kernels.packPoints(xsAt, yMm, zsAt, width, maskAt, bit, lights, scratchAt, to);
    }
  });
  return { at, lengthBytes };
}

type ShortPacker = (
  ...line: [
    rawAt: number,
    xs: number,
    yMm: number,
    width: number,
    mask: number,
    bit: number,
    lights: number,
    to: number,
  ]
) => number;

/** Packs lines of raw heights without decoding them first; null for heights that only decoding and packing one after the other can do. */
function shortPacker({ wasm }: KernelMemory, height: Planes["height"]): ShortPacker | null {
  const { dtype, scale_mm: scale, offset_mm: offset, invalid } = height;
  if (wasm === null || (dtype !== "u16" && dtype !== "i16")) return null;
  const [least, greatest] = dtype === "u16" ? [0, 0xffff] : [-0x8000, 0x7fff];
  // Others stand for nothing.
  const codes = invalid.filter((code) => Number.isInteger(code) && code >= least && code <= greatest);
  // Between two heights that are finite all are.
  const areFinite = [least, greatest].every((raw) => Number.isFinite(Math.fround(raw * scale + offset)));
  if (codes.length > 2 || !areFinite) return null;
  const signed = dtype === "i16" ? 1 : 0;
  const [first = -1, second = first] = codes.map((code) => code & 0xffff);
  return (rawAt, ...line) => wasm.packShorts(rawAt, signed, scale, offset, first, second, ...line);
}

function layOutLines(memory: KernelMemory, { planes, geometry, heights, mask }: CloudSource, lines: number) {
  const decode = heightDecoder(memory, planes.height);
  const rawLines = lineReader(memory, itemBytes(planes.height.dtype) * geometry.width, lines, heights);
  const zsAt = memory.allocate(4 * geometry.width);
  const maskAt = mask === null ? 0 : memory.allocate(mask.length);
  if (mask !== null) memory.bytes(maskAt, mask.length).set(mask);
  return { rawLines, decode, zsAt, maskAt };
}

/** u8 of every position of the lines, one byte for a vertex of twelve or thirteen; 0 without luminance. */
async function layOutIntensities(
  memory: KernelMemory,
  { planes, geometry, luminance: source }: CloudSource,
  firstLine: number,
  endLine: number,
): Promise<number> {
  const { luminance } = planes;
  if (luminance === undefined) return 0;
  const { width } = geometry;
  const lines = endLine - firstLine;
  const intensitiesAt = memory.allocate(lines * width);
  if (luminance.dtype === "u8") {
    await source(firstLine, lines, intensitiesAt);
    return intensitiesAt;
  }
  const shift = Math.max(0, luminance.bits - INTENSITY_BITS);
  await lineReader(
    memory,
    itemBytes(luminance.dtype) * width,
    lines,
    source,
  )(firstLine, lines, (nth, rawAt) => memory.kernels.mapLuminance(rawAt, width, shift, intensitiesAt + nth * width));
  return intensitiesAt;
}
