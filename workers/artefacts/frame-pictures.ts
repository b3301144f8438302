import { itemBytes, type Planes } from "../../core/capture.js";
import type { GridGeometry } from "./grid-layout.js";
import { heightDecoder } from "./height-decoder.js";
import type { KernelMemory } from "./kernel-memory.js";
import { encodePng, type SampleSource } from "./png-encoder.js";

/** Raw lines of a plane, as stored, into an address of the memory. */
export type LineSource = (firstLine: number, count: number, at: number) => Promise<void>;

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
  const pitches = [
    ["x_pitch_mm", String(geometry.xPitchMm)],
    ["y_pitch_mm", String(geometry.yPitchMm)],
  ] as const;
  const picture = { width, height: geometry.lines, bitDepth: 16 } as const;
  if (height.dtype === "u16" && height.invalid.includes(0)) {
    const table = sampleTable(memory, height, (raw) => raw);
    const texts = [
      ["z_scale_mm", String(height.scale_mm)],
      ["z_offset_mm", String(height.offset_mm)],
      ...pitches,
    ] as const;
    return encodePng(memory, { ...picture, texts }, tableSource(memory, width, table, lines));
  }
  const { lowest, highest } = await zBounds(memory, height, geometry, lines);
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
    return encodePng(memory, { ...picture, texts }, tableSource(memory, width, table, lines));
  }
  const decode = heightDecoder(memory, height);
  const rawAt = memory.allocate(4 * width);
  const zsAt = memory.allocate(4 * width);
  return encodePng(memory, { ...picture, texts }, async (firstLine, count, samples, pitch) => {
    for (let nth = 0; nth < count; nth++) {
      await lines(firstLine + nth, 1, rawAt);
      decode(rawAt, width, zsAt);
      memory.kernels.mapHeights(zsAt, width, lowest, steps, samples + nth * pitch);
    }
  });
}

/** The luminance as an 8-bit PNG; more bits are shifted down. */
export async function encodeLuminance(
  memory: KernelMemory,
  luminance: NonNullable<Planes["luminance"]>,
  { width, lines: height }: Pick<GridGeometry, "width" | "lines">,
  lines: LineSource,
): Promise<Uint8Array<ArrayBuffer>> {
  const picture = { width, height, bitDepth: 8, texts: [] } as const;
  const rawAt = memory.allocate(itemBytes(luminance.dtype) * width);
  const shift = Math.max(0, luminance.bits - 8);
  return encodePng(memory, picture, async (firstLine, count, samples, pitch) => {
    for (let nth = 0; nth < count; nth++) {
      const to = samples + nth * pitch;
      if (luminance.dtype === "u8") await lines(firstLine + nth, 1, to);
      else {
        await lines(firstLine + nth, 1, rawAt);
        memory.kernels.mapLuminance(rawAt, width, shift, to);
      }
    }
  });
}

/** Lowest and highest z of a plane; Infinity and -Infinity without a point. */
async function zBounds(
  memory: KernelMemory,
  height: Planes["height"],
  { width, lines: lineCount }: GridGeometry,
  lines: LineSource,
): Promise<{ lowest: number; highest: number }> {
  const decode = heightDecoder(memory, height);
  const rawAt = memory.allocate(itemBytes(height.dtype) * width);
  const zsAt = memory.allocate(4 * width);
  let lowest = Number.POSITIVE_INFINITY;
  let highest = Number.NEGATIVE_INFINITY;
  for (let line = 0; line < lineCount; line++) {
    await lines(line, 1, rawAt);
    decode(rawAt, width, zsAt);
    lowest = memory.kernels.lowestOf(zsAt, width, lowest);
    highest = memory.kernels.highestOf(zsAt, width, highest);
  }
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

function tableSource(memory: KernelMemory, width: number, table: number, lines: LineSource): SampleSource {
  const rawAt = memory.allocate(2 * width);
  return async (firstLine, count, samples, pitch) => {
    for (let nth = 0; nth < count; nth++) {
      await lines(firstLine + nth, 1, rawAt);
      memory.kernels.mapByTable(rawAt, width, table, samples + nth * pitch);
    }
  };
}
