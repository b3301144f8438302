import t from "tap";
import { createRandom } from "../../../../core/random.js";
import { countBits, countLineBits } from "../../../../workers/artefacts/cloud/line-counts.js";

const seed = Number(process.env.TEST_SEED ?? 20261122);
t.comment(`TEST_SEED=${seed}`);

t.test("bits of every line, wherever in a byte lines begin and end", async (t) => {
  const random = createRandom(seed);
  for (let round = 0; round < 500; round++) {
    const width = random.integer(1, 140);
    const lines = random.integer(0, 20);
    const mask = random.bytes(Math.ceil((width * lines) / 8));
    const expected = Array.from({ length: lines }, (_, line) => {
      let count = 0;
      for (let at = line * width; at < (line + 1) * width; at++) count += ((mask[at >> 3] as number) >> (at & 7)) & 1;
      return count;
    });
    if (String(countLineBits(mask, width, lines)) !== String(expected)) return void t.fail(`${width} x ${lines}`);
    const all = [...mask].reduce((sum, byte) => sum + byte.toString(2).replaceAll("0", "").length, 0);
    const whole = round % 2 === 0 ? mask : Buffer.concat([Uint8Array.of(255), mask]).subarray(1);
    if (countBits(whole) !== all) return void t.fail(`${mask.length} bytes have ${all} bits, not ${countBits(whole)}`);
  }
  t.pass("500 masks");
});
