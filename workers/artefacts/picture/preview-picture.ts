import { itemBytes, type Planes } from "../../../core/capture/capture.js";
import { VIRIDIS } from "../../../core/capture/viridis.js";
import type { GridGeometry } from "../filter/grid-layout.js";
import { heightDecoder } from "../frame/height-decoder.js";
import { type LineSource, lineReader } from "../frame/line-blocks.js";
import type { KernelMemory } from "../kernel-memory.js";
import { heightPercentiles } from "./height-percentiles.js";
import { encodePng, type SampleSource } from "./png-encoder.js";

/** Most pixels of the longer side. */
const LONGER_SIDE_PIXELS = 640;
/** A few wrong points must not decide the colours of all others. */
const COLOURED_SHARES = [0.01, 0.99];
const LAST_COLOUR = 255;
const MIDDLE_COLOUR = 128;

/**
 * The preview of a frame: its heights in false colours, as an 8-bit palette PNG.
 *
 * Sample 0 is transparent and means no measurement. Samples 1 to 255 are z from the 1st to the 99th percentile of all
 * heights, in viridis. Heights beyond have the colour of the nearer end. The text chunks `z_min_mm` and `z_max_mm` are
 * the two percentiles; `x_pitch_mm` and `y_pitch_mm` are those of the pixels.
 *
 * A pixel is the mean of the measured points of a block of k x k. With every k-th point instead, chance would decide
 * whether a narrow scratch is seen. A block without a measured point is transparent. If the two percentiles are the
 * same, this height has the middle colour. A frame without a measured point is transparent everywhere, and has neither
 * `z_min_mm` nor `z_max_mm`.
 *
 * Heights are f32 without the plane's offset, which is only added for the text chunks. So a surface far from zero keeps
 * its colours.
 */
export async function encodePreview(
  memory: KernelMemory,
  height: Planes["height"],
  geometry: GridGeometry,
  source: LineSource,
): Promise<Uint8Array<ArrayBuffer>> {
  const { width, lines } = geometry;
  const rawLines = lineReader(memory, width * itemBytes(height.dtype), lines, source);
  const decode = heightDecoder(memory, { ...height, offset_mm: 0 });
  const zsAt = memory.allocate(4 * width);
  const heights: HeightReader = (firstLine, count, use) =>
    rawLines(firstLine, count, (nth, rawAt) => {
      decode(rawAt, width, zsAt);
      use(nth, memory.singles(zsAt, width));
    });
  const range = await heightPercentiles((use) => heights(0, lines, (_, zs) => use(zs)), COLOURED_SHARES);
  const [lowest = 0, highest = 0] = range ?? [];
  const block = previewBlock(geometry);
  const texts: [string, string][] = [
    ["x_pitch_mm", String(geometry.xPitchMm * block)],
    ["y_pitch_mm", String(geometry.yPitchMm * block)],
  ];
  if (range !== undefined) {
    const [min, max] = [lowest + height.offset_mm, highest + height.offset_mm];
    texts.unshift(["z_min_mm", String(min)], ["z_max_mm", String(max)]);
  }
  const size = { width: Math.ceil(width / block), height: Math.ceil(lines / block) };
  const samples = blockSamples(memory, heights, { ...size, lines, block }, colourOf(lowest, highest));
  return encodePng(memory, { ...size, bitDepth: 8, palette: VIRIDIS, texts }, samples);
}

/** A pixel of a preview shows a block of this many columns and lines. */
export function previewBlock({ width, lines }: Pick<GridGeometry, "width" | "lines">): number {
  return Math.ceil(Math.max(width, lines) / LONGER_SIDE_PIXELS);
}

/** Reads some lines of heights: z in mm as f32 without the offset. It is Infinity where there is no measurement. */
type HeightReader = (firstLine: number, count: number, use: (nth: number, zs: Float32Array) => void) => Promise<void>;

function colourOf(lowest: number, highest: number): (z: number) => number {
  const steps = highest > lowest ? (LAST_COLOUR - 1) / (highest - lowest) : 0;
  return (z) => {
    if (z <= lowest) return z === highest ? MIDDLE_COLOUR : 1;
    return z >= highest ? LAST_COLOUR : Math.trunc((z - lowest) * steps + 1.5);
  };
}

/** Gives the colour of the mean of each block of points. It is 0 for a block without a measured point. */
function blockSamples(
  memory: KernelMemory,
  heights: HeightReader,
  { width, lines, block }: { width: number; lines: number; block: number },
  colour: (z: number) => number,
): SampleSource {
  const sums = new Float64Array(width);
  const counts = new Float64Array(width);
  return async (firstRow, rows, samples, pitch) => {
    const firstLine = firstRow * block;
    const count = Math.min(rows * block, lines - firstLine);
    await heights(firstLine, count, (nth, zs) => {
      for (let at = 0; at < zs.length; at++) {
        const z = zs[at] as number;
        if (z === Number.POSITIVE_INFINITY) continue;
        const column = Math.trunc(at / block);
        (sums[column] as number) += z;
        (counts[column] as number)++;
      }
      if ((nth + 1) % block !== 0 && nth + 1 < count) return;
      const row = memory.bytes(samples + Math.trunc(nth / block) * pitch, width);
      for (let column = 0; column < width; column++) {
        const points = counts[column] as number;
        row[column] = points === 0 ? 0 : colour((sums[column] as number) / points);
      }
      sums.fill(0);
      counts.fill(0);
    });
  };
}
