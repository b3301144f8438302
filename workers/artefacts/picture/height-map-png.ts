import { itemBytes, type Planes } from "../../../core/capture/capture.js";
import type { GridGeometry } from "../filter/grid-layout.js";
import { heightDecoder } from "../frame/height-decoder.js";
import { type LineReader, type LineSource, lineReader } from "../frame/line-blocks.js";
import type { KernelMemory } from "../kernel-memory.js";
import { encodePng, type SampleSource } from "./png-encoder.js";

/**
 * The height map as a 16-bit PNG. Sample 0 means no measurement. If 0 is an invalid code of a u16 plane, its raw values
 * are used unchanged. Otherwise 1 to 65535 cover z from the lowest to the highest, which takes a pass over the plane
 * first. z is f64 here: in f32, heights far from zero would lose their steps before they are mapped.
 */
export async function encodeHeightMap(
  memory: KernelMemory,
  height: Planes["height"],
  geometry: GridGeometry,
  lines: LineSource,
): Promise<Uint8Array<ArrayBuffer>> {
  const { width } = geometry;
  const rawLines = lineReader(memory, width * itemBytes(height.dtype), geometry.lines, lines);
  const pitches = [
    ["x_pitch_mm", String(geometry.xPitchMm)],
    ["y_pitch_mm", String(geometry.yPitchMm)],
  ] as const;
  const picture = { width, height: geometry.lines, bitDepth: 16 } as const;
  if (height.dtype === "u16" && height.invalid.includes(0)) {
    const texts = [
      ["z_scale_mm", String(height.scale_mm)],
      ["z_offset_mm", String(height.offset_mm)],
      ...pitches,
    ] as const;
    return encodePng(memory, { ...picture, texts }, swappedSource(memory, height, width, rawLines));
  }
  const isShort = itemBytes(height.dtype) === 2;
  const plane = isShort ? shortPlane(memory, height, width) : wordPlane(memory, height, width);
  const { lowest, highest } = await plane.bounds(rawLines, geometry.lines);
  // A plane without a point has no bounds.
  const bounds =
    lowest <= highest
      ? ([
          ["z_min_mm", String(lowest)],
          ["z_max_mm", String(highest)],
        ] as const)
      : [];
  const texts = [...bounds, ...pitches];
  const steps = highest > lowest ? Math.min(65_534 / (highest - lowest), Number.MAX_VALUE) : 0;
  return encodePng(memory, { ...picture, texts }, plane.samples(rawLines, lowest, steps));
}

/** How the heights of a plane become samples. */
interface HeightPlane {
  /** Lowest and highest z. They are Infinity and -Infinity if there is no point. */
  bounds(rawLines: LineReader, lines: number): Promise<{ lowest: number; highest: number }>;
  /** @param steps per mm */
  samples(rawLines: LineReader, lowest: number, steps: number): SampleSource;
}

function wordPlane(memory: KernelMemory, height: Planes["height"], width: number): HeightPlane {
  const { dtype, scale_mm: scale, offset_mm: offset } = height;
  const isSingle = dtype === "f32" ? 1 : 0;
  const decode = heightDecoder(memory, height);
  // These z only say where there is a measurement.
  const zsAt = memory.allocate(4 * width);
  const boundsAt = memory.allocate(16);
  return {
    async bounds(rawLines, lines) {
      memory.doubles(boundsAt, 2).set([Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]);
      await rawLines(0, lines, (_nth, rawAt) => {
        decode(rawAt, width, zsAt);
        memory.kernels.boundRaws(rawAt, isSingle, zsAt, width, boundsAt);
      });
      const raws = [...memory.doubles(boundsAt, 2)];
      if (raws[0] === Number.POSITIVE_INFINITY) return boundsOf([]);
      // If a raw value is between two others, so is its z.
      return boundsOf(raws.map((raw) => raw * scale + offset));
    },
    samples: (rawLines, lowest, steps) => (firstLine, count, samples, pitch) =>
      rawLines(firstLine, count, (nth, rawAt) => {
        decode(rawAt, width, zsAt);
        const out = samples + nth * pitch;
        memory.kernels.mapHeights(rawAt, isSingle, zsAt, width, scale, offset, lowest, steps, out);
      }),
  };
}

function shortPlane(memory: KernelMemory, height: Planes["height"], width: number): HeightPlane {
  const zs = shortHeights(height);
  return {
    async bounds(rawLines, lines) {
      const seenAt = memory.allocate(SHORTS);
      memory.bytes(seenAt, SHORTS).fill(0);
      await rawLines(0, lines, (_nth, rawAt) => memory.kernels.markValues(rawAt, width, seenAt));
      const seen = memory.bytes(seenAt, SHORTS);
      return boundsOf(zs.filter((z, bits) => seen[bits] === 1 && !Number.isNaN(z)));
    },
    samples(rawLines, lowest, steps) {
      const sampleOf = (z: number): number => Math.min(65_535, Math.trunc((z - lowest) * steps + 1.5));
      const table = sampleTable(memory, (bits) => (Number.isNaN(zs[bits]) ? 0 : sampleOf(zs[bits] as number)));
      return tableSource(memory, width, table, rawLines);
    },
  };
}

function boundsOf(zs: ArrayLike<number> & Iterable<number>): { lowest: number; highest: number } {
  let [lowest, highest] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const z of zs) {
    lowest = Math.min(lowest, z);
    highest = Math.max(highest, z);
  }
  return { lowest, highest };
}

/** How many values 16 bits have. */
const SHORTS = 0x1_0000;

/** z of every raw value of a 16-bit plane, by its bits. It is NaN where there is no measurement. */
function shortHeights({ dtype, scale_mm: scale, offset_mm: offset, invalid }: Planes["height"]): Float64Array {
  return Float64Array.from({ length: SHORTS }, (_, bits) => {
    const raw = dtype === "i16" ? (bits << 16) >> 16 : bits;
    const z = raw * scale + offset;
    return Number.isFinite(Math.fround(z)) && !invalid.includes(raw) ? z : Number.NaN;
  });
}

/**
 * Makes a table of the sample of every raw value of a 16-bit plane, by its bits. The two bytes of each are exchanged.
 */
function sampleTable(memory: KernelMemory, sampleOf: (bits: number) => number): number {
  const at = memory.allocate(2 * SHORTS);
  const table = memory.bytes(at, 2 * SHORTS);
  for (let bits = 0; bits < SHORTS; bits++) {
    const sample = sampleOf(bits);
    table[2 * bits] = sample >> 8;
    table[2 * bits + 1] = sample & 255;
  }
  return at;
}

/** Uses raw values as they are, and 0 for no measurement. */
function swappedSource(
  memory: KernelMemory,
  height: Planes["height"],
  width: number,
  rawLines: LineReader,
): SampleSource {
  const { scale_mm: scale, offset_mm: offset, invalid } = height;
  // A z that f32 cannot hold is no measurement. If two raw values have a z, so has every value between them.
  const isAlwaysFinite = [0, 65_535].every((raw) => Number.isFinite(Math.fround(raw * scale + offset)));
  if (!isAlwaysFinite) {
    const zs = shortHeights(height);
    const table = sampleTable(memory, (bits) => (Number.isNaN(zs[bits]) ? 0 : bits));
    return tableSource(memory, width, table, rawLines);
  }
  // Code 0 becomes 0 anyway, so it need not be looked for.
  const codes = invalid.filter((code) => (code & 0xffff) === code && code !== 0);
  const codesAt = memory.allocate(4 * codes.length);
  memory.words(codesAt, codes.length).set(codes);
  return (firstLine, count, samples, pitch) =>
    rawLines(firstLine, count, (nth, rawAt) =>
      memory.kernels.swapSamples(rawAt, width, codesAt, codes.length, samples + nth * pitch),
    );
}

function tableSource(memory: KernelMemory, width: number, table: number, rawLines: LineReader): SampleSource {
  return (firstLine, count, samples, pitch) =>
    rawLines(firstLine, count, (nth, rawAt) => memory.kernels.mapByTable(rawAt, width, table, samples + nth * pitch));
}
