import { itemBytes, type Planes } from "../../core/capture.js";
import type { GridGeometry } from "./grid-layout.js";
import { heightDecoder } from "./height-decoder.js";
import type { KernelMemory } from "./kernel-memory.js";
import { type LineReader, type LineSource, lineReader } from "./line-blocks.js";
import { encodePng, type SampleSource } from "./png-encoder.js";

/**
 * The height map as a 16-bit PNG (decisions.md, Captures): 0 is no measurement. Raw u16 values stay as they are where 0 is an invalid code;
 * else 1 to 65535 are z from the lowest to the highest, which takes a pass over the plane before.
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
  const { lowest, highest } = await zBounds(memory, height, geometry, rawLines);
  // Without a point there is nothing that the bounds could be.
  const bounds =
    lowest <= highest
      ? ([
          ["z_min_mm", String(lowest)],
          ["z_max_mm", String(highest)],
        ] as const)
      : [];
  const texts = [...bounds, ...pitches];
  const steps = highest > lowest ? 65_534 / (highest - lowest) : 0;
  if (itemBytes(height.dtype) === 2) {
    const table = sampleTable(memory, height, (_raw, z) => Math.min(65_535, Math.trunc((z - lowest) * steps + 1.5)));
    return encodePng(memory, { ...picture, texts }, tableSource(memory, width, table, rawLines));
  }
  const decode = heightDecoder(memory, height);
  const zsAt = memory.allocate(4 * width);
  return encodePng(memory, { ...picture, texts }, (firstLine, count, samples, pitch) =>
    rawLines(firstLine, count, (nth, rawAt) => {
      decode(rawAt, width, zsAt);
      memory.kernels.mapHeights(zsAt, width, lowest, steps, samples + nth * pitch);
    }),
  );
}

/** The luminance as an 8-bit PNG; more bits are shifted down. */
export async function encodeLuminance(
  memory: KernelMemory,
  luminance: NonNullable<Planes["luminance"]>,
  { width, lines: height }: Pick<GridGeometry, "width" | "lines">,
  lines: LineSource,
): Promise<Uint8Array<ArrayBuffer>> {
  const picture = { width, height, bitDepth: 8, texts: [] } as const;
  const rawLines = lineReader(memory, itemBytes(luminance.dtype) * width, height, lines);
  const shift = Math.max(0, luminance.bits - 8);
  return encodePng(memory, picture, (firstLine, count, samples, pitch) =>
    rawLines(firstLine, count, (nth, rawAt) => {
      const to = samples + nth * pitch;
      if (luminance.dtype === "u8") memory.bytes(to, width).set(memory.bytes(rawAt, width));
      else memory.kernels.mapLuminance(rawAt, width, shift, to);
    }),
  );
}

/** Lowest and highest z of a plane; Infinity and -Infinity without a point. */
async function zBounds(
  memory: KernelMemory,
  height: Planes["height"],
  { width, lines }: GridGeometry,
  rawLines: LineReader,
): Promise<{ lowest: number; highest: number }> {
  const decode = heightDecoder(memory, height);
  const zsAt = memory.allocate(4 * width);
  let lowest = Number.POSITIVE_INFINITY;
  let highest = Number.NEGATIVE_INFINITY;
  await rawLines(0, lines, (_nth, rawAt) => {
    decode(rawAt, width, zsAt);
    lowest = memory.kernels.lowestOf(zsAt, width, lowest);
    highest = memory.kernels.highestOf(zsAt, width, highest);
  });
  return { lowest, highest };
}

/** The sample of every raw value of a 16-bit plane, its bytes exchanged; 0 for no measurement. */
function sampleTable(
  memory: KernelMemory,
  height: Planes["height"],
  sampleOf: (raw: number, zMm: number) => number,
): number {
  const { dtype, scale_mm: scale, offset_mm: offset, invalid } = height;
  const at = memory.allocate(2 * 0x1_0000);
  const table = memory.bytes(at, 2 * 0x1_0000);
  for (let bits = 0; bits < 0x1_0000; bits++) {
    const raw = dtype === "i16" ? (bits << 16) >> 16 : bits;
    const z = Math.fround(raw * scale + offset);
    const sample = Number.isFinite(z) && !invalid.includes(raw) ? sampleOf(raw, z) : 0;
    table[2 * bits] = sample >> 8;
    table[2 * bits + 1] = sample & 255;
  }
  return at;
}

/** Raw values as they are, 0 for no measurement. */
function swappedSource(
  memory: KernelMemory,
  height: Planes["height"],
  width: number,
  rawLines: LineReader,
): SampleSource {
  const { scale_mm: scale, offset_mm: offset, invalid } = height;
  // A z that is no f32 is no measurement. Between two raw values that have one, all have.
  const isAlwaysFinite = [0, 65_535].every((raw) => Number.isFinite(Math.fround(raw * scale + offset)));
  if (!isAlwaysFinite) {
    const table = sampleTable(memory, height, (raw) => raw);
    return tableSource(memory, width, table, rawLines);
  }
  // Of codes 0 stays 0 without being looked for.
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
