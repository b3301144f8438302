import { crc32 } from "node:zlib";
import t from "tap";
import { lineBytes, type Planes } from "../../../../core/capture/capture.js";
import { createRandom } from "../../../../core/random.js";
import { heightCrcs, luminanceCrc } from "../../../../workers/artefacts/frame/plane-crcs.js";

t.test("the CRCs of batches and of the heights after each tell those of each plane", async (t) => {
  const seed = Number(process.env.SEED ?? 20_261_208);
  t.comment(`seed ${seed}`);
  const random = createRandom(seed);
  for (let nth = 0; nth < 200; nth++) {
    const planes: Planes = {
      height: { dtype: random.pick(["u16", "i32"]), scale_mm: 1, offset_mm: 0, invalid: [] },
      ...(random.chance(0.8) && { luminance: { dtype: random.pick(["u8", "u16"]), bits: 8 } }),
    };
    const width = random.integer(1, 70);
    const { height, luminance } = lineBytes(planes, width);
    let heightCrc32 = 0;
    let lightCrc32 = 0;
    const expected: number[] = [];
    const batches = Array.from({ length: random.integer(0, 12) }, () => {
      const lineCount = random.pick([1, 4, 4, 4, random.integer(1, 20)]);
      const [heights, lights] = [random.bytes(lineCount * height), random.bytes(lineCount * luminance)];
      heightCrc32 = crc32(heights, heightCrc32);
      lightCrc32 = crc32(lights, lightCrc32);
      expected.push(crc32(heights));
      return { lineCount, crc32: crc32(lights, crc32(heights)), heightCrc32 };
    });
    t.same(heightCrcs(planes, width, batches), expected, `heights of ${batches.length} batches`);
    t.equal(luminanceCrc(planes, width, batches), lightCrc32, "luminance");
  }
});
