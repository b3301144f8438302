import t from "tap";
import type { Planes } from "../../../../core/capture/capture.js";
import { createRandom } from "../../../../core/random.js";
import { newKernelMemory } from "../../../../workers/artefacts/kernel-memory.js";
import { encodeLuminancePreview } from "../../../../workers/artefacts/picture/luminance-preview.js";
import { planeSource } from "../../../helpers/captures/made-frames.js";
import { readGreyPng } from "../../../helpers/captures/png-reader.js";

const memory = await newKernelMemory();

/** The mean of each block of points, in 8 bits. */
function plainMeans(values: ArrayLike<number>, width: number, lines: number, block: number, bits: number): number[] {
  const means: number[] = [];
  for (let top = 0; top < lines; top += block) {
    for (let left = 0; left < width; left += block) {
      const points: number[] = [];
      for (let line = top; line < Math.min(lines, top + block); line++) {
        for (let column = left; column < Math.min(width, left + block); column++) {
          points.push(values[line * width + column] as number);
        }
      }
      const mean = points.reduce((sum, one) => sum + one, 0) / points.length;
      means.push(Math.min(255, Math.floor(mean / 2 ** (bits - 8))));
    }
  }
  return means;
}

t.test("each pixel is the mean of its block, in 8 bits", async (t) => {
  const random = createRandom(20_261_128);
  for (const [width, lines, bits] of [
    [1, 1, 8],
    [640, 3, 8],
    [641, 200, 8],
    [3, 2_001, 10],
    [1_300, 50, 12],
    [2_000, 1, 16],
  ] as const) {
    const block = Math.ceil(Math.max(width, lines) / 640);
    const list = Array.from({ length: width * lines }, () => Math.floor(random.next() * 2 ** bits));
    const values = bits === 8 ? Uint8Array.from(list) : Uint16Array.from(list);
    const plane: NonNullable<Planes["luminance"]> = { dtype: bits === 8 ? "u8" : "u16", bits };
    memory.reset();
    const source = planeSource(memory, new Uint8Array(values.buffer), width * values.BYTES_PER_ELEMENT);
    const picture = readGreyPng(await encodeLuminancePreview(memory, plane, { width, lines }, source));
    const label = `${width} x ${lines}, ${bits} bits`;
    t.same([picture.width, picture.height], [Math.ceil(width / block), Math.ceil(lines / block)], label);
    t.same([...picture.samples], plainMeans(list, width, lines, block, bits), label);
  }
});
