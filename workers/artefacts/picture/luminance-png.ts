import { itemBytes, type Planes } from "../../../core/capture/capture.js";
import type { GridGeometry } from "../filter/grid-layout.js";
import { type LineSource, lineReader } from "../frame/line-blocks.js";
import type { KernelMemory } from "../kernel-memory.js";
import { encodePng } from "./png-encoder.js";

/** The luminance as an 8-bit PNG. If it has more bits, they are shifted down. */
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
