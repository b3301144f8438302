import { createRandom } from "../../../core/random.js";
import { filterOutliers } from "../../../workers/artefacts/filter/outlier-filter.js";
import { newKernelMemory } from "../../../workers/artefacts/kernel-memory.js";
import { frameOf, loadFrame, type MadeFrame } from "./made-frames.js";

/**
 * Two frames that differ in one height, by the least step of an f32: in the one its point stays, in the other it is an outlier. So in both its
 * distance is as near to the threshold as can be, and far within the doubt that distances in f32 leave.
 */
export async function doubtfulFrames(seed: number): Promise<[stays: MadeFrame, leaves: MadeFrame]> {
  const [width, lines] = [61, 53];
  const at = 25 * width + 30;
  const random = createRandom(seed);
  const heights = Float32Array.from({ length: width * lines }, () => random.normal() * 0.02);
  const pattern = new Uint32Array(heights.buffer, 4 * at, 1);
  const frame = (bits: number): MadeFrame => {
    pattern[0] = bits;
    return frameOf(`a point at ${heights[at]}`, "f32", { width, lines }, heights);
  };
  const memory = await newKernelMemory();
  const stays = async (bits: number): Promise<boolean> => {
    const mask = filterOutliers(memory, await loadFrame(memory, frame(bits)));
    return ((mask.bits[at >> 3] as number) & (1 << (at & 7))) !== 0;
  };
  heights[at] = 0.001;
  let below = pattern[0] as number;
  heights[at] = 100;
  let above = pattern[0] as number;
  while (above - below > 1) {
    const middle = (below + above) >>> 1;
    if (await stays(middle)) below = middle;
    else above = middle;
  }
  return [frame(below), frame(above)];
}
