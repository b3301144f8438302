/**
 * Binary little-endian PLY of a frame's points in scan order. Its size follows from the number of points in each
 * line, and any part of the file can be made from the lines that it covers.
 */
import { itemBytes, type Planes } from "../../../core/capture/capture.js";
import { vertexBytes } from "../../../core/capture/ply-header.js";
import type { GridGeometry } from "../filter/grid-layout.js";
import { heightDecoder, layOutCodes } from "../frame/height-decoder.js";
import { blockReader, type LineSource } from "../frame/line-blocks.js";
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
  /** Of raw heights that are in the memory at a time. */
  blockBytes?: number;
}

/** Counts the points of the cloud in each line. */
export async function countCloudPoints(memory: KernelMemory, source: CloudSource): Promise<Uint32Array<ArrayBuffer>> {
  const { width, lines } = source.geometry;
  const counts = new Uint32Array(lines);
  const { rawBlocks, rawLineBytes, decode, zsAt, maskAt } = layOutLines(memory, source, lines);
  await rawBlocks(0, lines, (first, taken, rawAt) => {
    for (let nth = 0; nth < taken; nth++) {
      const line = first + nth;
      decode(rawAt + nth * rawLineBytes, width, zsAt);
      counts[line] = memory.kernels.countPoints(zsAt, width, maskAt, line * width - (source.maskFirstBit ?? 0));
    }
  });
  return counts;
}

/** Vertices in the memory. */
export interface PackedCloud {
  at: number;
  lengthBytes: number;
}

/**
 * The vertices of some lines, without a header. Memory: the room of all positions, their luminance, a block of raw lines, and the mask.
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
  const { rawBlocks, rawLineBytes, decode, zsAt, maskAt } = layOutLines(memory, source, lines);
  const packLines = linePacker(memory, source);
  const layOutLights = packLines === null ? layOutIntensities : layOutLuminance;
  const lights = await layOutLights(memory, source, firstLine, endLine);
  const xsAt = memory.allocate(4 * width);
  const scratchAt = memory.allocate(16);
  const at = memory.allocate(lines * width * vertexBytes(planes) + STORE_BYTES);
  const xs = memory.singles(xsAt, width);
  for (let column = 0; column < width; column++) xs[column] = geometry.xOriginMm + column * geometry.xPitchMm;
  let lengthBytes = 0;
  await rawBlocks(firstLine, lines, (done, taken, rawAt) => {
    const lightsOf = (nth: number): number => lights.at + nth * lights.lineBytes;
    const bitOf = (nth: number): number => (firstLine + nth) * width - (source.maskFirstBit ?? 0);
    if (packLines !== null) {
      const block = [rawAt, xsAt, firstLine + done, taken, maskAt, bitOf(done), lightsOf(done), lights.shift] as const;
      lengthBytes += packLines(...block, at + lengthBytes);
      return;
    }
    for (let nth = 0; nth < taken; nth++) {
      const yMm = geometry.yOriginMm + (firstLine + done + nth) * geometry.yPitchMm;
      decode(rawAt + nth * rawLineBytes, width, zsAt);
      const line = [xsAt, yMm, zsAt, width, maskAt, bitOf(done + nth), lightsOf(done + nth), scratchAt] as const;
      lengthBytes += memory.kernels.packPoints(...line, at + lengthBytes);
    }
  });
  return { at, lengthBytes };
}

/** Packs lines of raw heights without decoding them first. */
type LinePacker = (
  ...block: [
    rawAt: number,
    xs: number,
    firstLine: number,
    lines: number,
    mask: number,
    bit: number,
    lights: number,
    lightShift: number,
    to: number,
  ]
) => number;

/** Null without WebAssembly, and for heights that only decoding and packing one after the other can do. */
function linePacker(memory: KernelMemory, { planes: { height }, geometry }: CloudSource): LinePacker | null {
  const { wasm } = memory;
  if (wasm === null) return null;
  const { dtype, scale_mm: scale, offset_mm: offset } = height;
  const { width, yOriginMm: y, yPitchMm: pitch } = geometry;
  if (dtype === "f32" || dtype === "i32") {
    const { codesAt, codeCount } = layOutCodes(memory, height);
    const raw = [dtype === "f32" ? 1 : 0, scale, offset, codesAt, codeCount] as const;
    return (rawAt, xs, firstLine, lines, ...more) =>
      wasm.packWords(rawAt, ...raw, xs, y, pitch, firstLine, lines, width, ...more);
  }
  const codes = shortCodes(height);
  if (codes === null) return null;
  const raw = [dtype === "i16" ? 1 : 0, scale, offset, ...codes] as const;
  return (rawAt, xs, firstLine, lines, ...more) =>
    wasm.packShorts(rawAt, ...raw, xs, y, pitch, firstLine, lines, width, ...more);
}

/** As `packShorts` takes them; null where there are more, or heights that are not finite. */
function shortCodes(height: Planes["height"]): [first: number, second: number] | null {
  const { dtype, scale_mm: scale, offset_mm: offset, invalid } = height;
  const [least, greatest] = dtype === "u16" ? [0, 0xffff] : [-0x8000, 0x7fff];
  // Codes that no raw value can have mean nothing.
  const codes = invalid.filter((code) => Number.isInteger(code) && code >= least && code <= greatest);
  // Between two heights that are finite all are.
  const areFinite = [least, greatest].every((raw) => Number.isFinite(Math.fround(raw * scale + offset)));
  if (codes.length > 2 || !areFinite) return null;
  const [first = -1, second = first] = codes.map((code) => code & 0xffff);
  return [first, second];
}

function layOutLines(memory: KernelMemory, cloud: CloudSource, lines: number) {
  const { planes, geometry, heights, mask, blockBytes } = cloud;
  const decode = heightDecoder(memory, planes.height);
  const rawLineBytes = itemBytes(planes.height.dtype) * geometry.width;
  const rawBlocks = blockReader(memory, rawLineBytes, lines, heights, blockBytes);
  const zsAt = memory.allocate(4 * geometry.width);
  const maskAt = mask === null ? 0 : memory.allocate(mask.length);
  if (mask !== null) memory.bytes(maskAt, mask.length).set(mask);
  return { rawBlocks, rawLineBytes, decode, zsAt, maskAt };
}

/** Luminance beside raw heights, or beside z; `at` 0: none. */
interface Lights {
  at: number;
  lineBytes: number;
  /** As `packShorts` takes it. */
  shift: number;
}

const NO_LIGHTS: Lights = { at: 0, lineBytes: 0, shift: -1 };

/** As it is stored. */
async function layOutLuminance(
  memory: KernelMemory,
  { planes: { luminance }, geometry: { width }, luminance: source }: CloudSource,
  firstLine: number,
  endLine: number,
): Promise<Lights> {
  if (luminance === undefined) return NO_LIGHTS;
  const lineBytes = itemBytes(luminance.dtype) * width;
  const at = memory.allocate((endLine - firstLine) * lineBytes);
  await source(firstLine, endLine - firstLine, at);
  return { at, lineBytes, shift: luminance.dtype === "u8" ? -1 : shiftOf(luminance.bits) };
}

/** As u8. */
async function layOutIntensities(
  memory: KernelMemory,
  cloud: CloudSource,
  firstLine: number,
  endLine: number,
): Promise<Lights> {
  const { luminance } = cloud.planes;
  if (luminance?.dtype !== "u16") return layOutLuminance(memory, cloud, firstLine, endLine);
  const { width } = cloud.geometry;
  const lines = endLine - firstLine;
  const at = memory.allocate(lines * width);
  const rawBlocks = blockReader(memory, itemBytes(luminance.dtype) * width, lines, cloud.luminance);
  await rawBlocks(firstLine, lines, (nth, taken, rawAt) =>
    memory.kernels.mapLuminance(rawAt, taken * width, shiftOf(luminance.bits), at + nth * width),
  );
  return { at, lineBytes: width, shift: -1 };
}

function shiftOf(bits: number): number {
  return Math.max(0, bits - INTENSITY_BITS);
}
