import { crc32 } from "node:zlib";
import t from "tap";
import { createRandom } from "../../../../core/random.js";
import { crc32Combiner } from "../../../../workers/artefacts/frame/crc-combination.js";

t.test("the CRC of parts joined is that of the whole, however long they are", async (t) => {
  const seed = Number(process.env.SEED ?? 20_261_124);
  t.comment(`seed ${seed}`);
  const random = createRandom(seed);
  for (let nth = 0; nth < 300; nth++) {
    const bytes = random.bytes(random.integer(0, 3_000));
    const at = random.integer(0, bytes.length);
    const combined = crc32Combiner(bytes.length - at)(crc32(bytes.subarray(0, at)), crc32(bytes.subarray(at)));
    if (combined !== crc32(bytes)) t.fail(`${at} of ${bytes.length} bytes: ${combined}`);
  }
  t.equal(crc32Combiner(4)(crc32("12345"), crc32("6789")), 0xcbf43926, "the check value of CRC-32");
  t.equal(crc32Combiner(5)(0, 0x1234_5678), 0x1234_5678, "nothing before");
  t.equal(crc32Combiner(0)(0x9234_5678, 0), 0x9234_5678, "nothing after it");
});

t.test("the CRC of zeros of more bytes than 2^32 is that of their halves", async (t) => {
  // 16 GiB are too many to compute in a test. So the CRC of 64 KiB is doubled up to there, and must be equal to the CRC
  // that is put together from a half and two quarters.
  let crc = crc32(new Uint8Array(1 << 16));
  let lengthBytes = 1 << 16;
  const steps: [number, number][] = [];
  while (lengthBytes < 2 ** 34) {
    crc = crc32Combiner(lengthBytes)(crc, crc);
    lengthBytes *= 2;
    steps.push([lengthBytes, crc]);
  }
  const [, twice] = steps[0] as [number, number];
  t.equal(twice, crc32(new Uint8Array(1 << 17)));
  const quarter = steps.at(-3) as [number, number];
  const three = crc32Combiner(quarter[0])((steps.at(-2) as [number, number])[1], quarter[1]);
  t.equal(crc32Combiner(quarter[0])(three, quarter[1]), crc);
});
