import { isDeepStrictEqual } from "node:util";
import { decode, Encoder } from "@msgpack/msgpack";
import t from "tap";
import { createRandom } from "../../../core/random.js";
import { decodeMessagePack } from "../../../storage/records/message-pack.js";
import { MessagePackEncoder } from "../../../storage/records/message-pack-encoder.js";
import { randomValue } from "../../helpers/random-values.js";

const seed = Number(process.env.TEST_SEED ?? 20261122);
t.comment(`TEST_SEED=${seed}`);

const encoder = new MessagePackEncoder();

t.test("random values come back as they were encoded", async (t) => {
  const random = createRandom(seed);
  for (let round = 0; round < 2_000; round++) {
    const value = randomValue(random, 4);
    const decoded = decodeMessagePack(encoder.encode(value));
    if (isDeepStrictEqual(decoded, value)) continue;
    t.strictSame(decoded, value, `round ${round}`);
    return;
  }
  t.pass("2,000 values");
});

t.test("each form of each type, on both sides of its limits, as the library reads it", async (t) => {
  const numbers = [0, 0.5, -0.5, 1e300, 5e-324];
  for (const power of [5, 7, 8, 15, 16, 31, 32, 33, 52, 53, 54, 63]) {
    for (const step of [-1, 0, 1]) numbers.push(2 ** power + step, -(2 ** power) + step);
  }
  const library = new Encoder();
  const floats = new Encoder({ forceFloat32: true });
  for (const number of numbers) {
    for (const bytes of [encoder.encode(number), library.encode(number), floats.encode(number + 0.25)]) {
      t.equal(decodeMessagePack(bytes), decode(bytes), `${number}`);
    }
  }
  for (const length of [0, 1, 15, 16, 31, 32, 63, 64, 65, 255, 256, 65_535, 65_536]) {
    for (const unit of ["a", "ä", "€", "😀", "\ufeff", "\ufffd"]) {
      t.equal(decodeMessagePack(encoder.encode(unit.repeat(length))), unit.repeat(length), `${length} times ${unit}`);
    }
    const list = Array.from({ length }, (_, at) => at % 100);
    t.same(decodeMessagePack(encoder.encode(list)), list, `a list of ${length}`);
    const map = Object.fromEntries(list.map((_, at) => [`${at}${"k".repeat(at % 70)}`, null]));
    t.same(decodeMessagePack(encoder.encode(map)), map, `a map of ${length}`);
  }
  // 64 bits that no double holds are as close as one comes, in the library too.
  for (const hex of ["cfffffffffffffffff", "cf0020000000000001", "d38000000000000000", "d3ffffffffffffffff"]) {
    const bytes = Buffer.from(hex, "hex");
    t.equal(decodeMessagePack(bytes), decode(bytes), hex);
  }
});

t.test("every cut of a value, and every byte behind one, is refused", async (t) => {
  const random = createRandom(seed);
  let isRefused = true;
  for (let round = 0; round < 40 && isRefused; round++) {
    const bytes = encoder.encode({ value: randomValue(random, 2) });
    const wrong = [
      Buffer.concat([bytes, Buffer.from([round])]),
      ...Array.from({ length: bytes.length }, (_, end) => bytes.subarray(0, end)),
    ];
    for (const cut of wrong) {
      try {
        decodeMessagePack(cut);
        isRefused = false;
        t.fail(`round ${round}: ${cut.length} of ${bytes.length} bytes`);
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
      }
    }
  }
});

t.test("what JSON does not have, and heads that promise more than there is, are refused at once", async (t) => {
  const refused = {
    "never used": "c1",
    "bin 8": "c40100",
    "ext of one byte": "d4ff00",
    "a number as key": "810102",
    "nil as key": "81c002",
    "a map as key": "818001",
    __proto__: "81a95f5f70726f746f5f5f80",
    "a text of 4 GB": "dbffffffff",
    "a list of 4 billion": "ddffffffff",
    "lists of 4 billion in a list": `dc0100${"ddffffffff".repeat(256)}`,
    "a map of 4 billion": "dfffffffff",
    "half a million levels": "91".repeat(500_000),
  };
  for (const [name, hex] of Object.entries(refused)) {
    t.throws(() => decodeMessagePack(Buffer.from(hex, "hex")), RangeError, name);
  }
  t.same(decodeMessagePack(encoder.encode({ after: 1 })), { after: 1 });
});

t.test("random bytes end in a value or in a refusal", async (t) => {
  const random = createRandom(seed);
  let values = 0;
  for (let round = 0; round < 20_000; round++) {
    const bytes = random.bytes(random.integer(0, 40));
    try {
      decodeMessagePack(bytes);
      values++;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
    }
  }
  t.ok(values > 0 && values < 20_000, `${values} values`);
});
