import { itemBytes, type Planes } from "../../../core/capture/capture.js";
import type { KernelMemory } from "../kernel-memory.js";
import { heightDecoder } from "./height-decoder.js";
import type { LineSource } from "./line-blocks.js";

/** The lines of a frame that are asked for: `firstLine`, and every `stride`-th after it, up to before `endLine`. */
export interface OverviewLines {
  firstLine: number;
  endLine: number;
  /** The stride also applies to columns, which count from 0. */
  stride: number;
}

/** The stride that leaves as many points of a frame as possible, but no more than `points`. */
export function overviewStride({ width, lines }: { width: number; lines: number }, points: number): number {
  let stride = Math.max(1, Math.floor(Math.sqrt((width * lines) / points)));
  while (Math.ceil(width / stride) * Math.ceil(lines / stride) > points) stride++;
  return stride;
}

/** Every `stride`-th height of some lines: z in mm as f32, NaN where there is no measurement, line by line. */
export async function packOverview(
  memory: KernelMemory,
  height: Planes["height"],
  width: number,
  heights: LineSource,
  { firstLine, endLine, stride }: OverviewLines,
): Promise<Uint8Array<ArrayBuffer>> {
  const rawAt = memory.allocate(width * itemBytes(height.dtype));
  const zsAt = memory.allocate(4 * width);
  const decode = heightDecoder(memory, height);
  const columns = Math.ceil(width / stride);
  const packed = new Float32Array(columns * Math.ceil((endLine - firstLine) / stride));
  let to = 0;
  for (let line = firstLine; line < endLine; line += stride) {
    await heights(line, 1, rawAt);
    decode(rawAt, width, zsAt);
    const zs = memory.singles(zsAt, width);
    for (let column = 0; column < width; column += stride) {
      const z = zs[column] as number;
      packed[to++] = z === Number.POSITIVE_INFINITY ? Number.NaN : z;
    }
  }
  return new Uint8Array(packed.buffer);
}
