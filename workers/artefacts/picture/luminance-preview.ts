import { itemBytes, type Planes } from "../../../core/capture/capture.js";
import type { GridGeometry } from "../filter/grid-layout.js";
import { type LineSource, lineReader } from "../frame/line-blocks.js";
import type { KernelMemory } from "../kernel-memory.js";
import { encodePng } from "./png-encoder.js";
import { previewBlock } from "./preview-picture.js";

/**
 * The luminance as a small 8-bit grey PNG, of the size of the height map's preview. A pixel is the mean of a block of
 * points. Values of more than 8 bits are divided down.
 */
export async function encodeLuminancePreview(
  memory: KernelMemory,
  { dtype, bits }: NonNullable<Planes["luminance"]>,
  { width, lines }: Pick<GridGeometry, "width" | "lines">,
  source: LineSource,
): Promise<Uint8Array<ArrayBuffer>> {
  const rawLines = lineReader(memory, itemBytes(dtype) * width, lines, source);
  const rawValues = (at: number): Uint8Array | Uint16Array =>
    dtype === "u8" ? memory.bytes(at, width) : new Uint16Array(memory.buffer, at, width);
  const block = previewBlock({ width, lines });
  const size = { width: Math.ceil(width / block), height: Math.ceil(lines / block) };
  const sums = new Float64Array(size.width);
  const divisor = 2 ** Math.max(0, bits - 8);
  const picture = { ...size, bitDepth: 8, texts: [] } as const;
  return encodePng(memory, picture, async (firstRow, rows, samples, pitch) => {
    const firstLine = firstRow * block;
    const count = Math.min(rows * block, lines - firstLine);
    await rawLines(firstLine, count, (nth, rawAt) => {
      const values = rawValues(rawAt);
      for (let at = 0; at < width; at++) (sums[Math.trunc(at / block)] as number) += values[at] as number;
      if ((nth + 1) % block !== 0 && nth + 1 < count) return;
      const row = memory.bytes(samples + Math.trunc(nth / block) * pitch, size.width);
      const blockLines = (nth % block) + 1;
      for (let column = 0; column < size.width; column++) {
        const points = blockLines * Math.min(block, width - column * block);
        row[column] = Math.min(255, Math.trunc((sums[column] as number) / points / divisor));
      }
      sums.fill(0);
    });
  });
}
