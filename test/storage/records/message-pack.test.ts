import { isDeepStrictEqual } from "node:util";
import t from "tap";
import { createRandom } from "../../../core/random.js";
import {
  decodeMap,
  decodeMessagePack,
  decodeMessagePackValues,
  encodeMessagePack,
} from "../../../storage/records/message-pack.js";
import { RecordDecodeError } from "../../../storage/records/record-decode-error.js";
import { randomValue } from "../../helpers/random-values.js";
import { sized } from "../../helpers/test-size.js";

const seed = Number(process.env.TEST_SEED ?? 20261121);
t.comment(`TEST_SEED=${seed}`);

const ROUNDS = sized(600, 2_000);

const hex = (value: unknown): string => Buffer.from(encodeMessagePack(value)).toString("hex");

t.test("random values come back as they were encoded, alone and one after the other", async (t) => {
  const random = createRandom(seed);
  for (let round = 0; round < ROUNDS; round++) {
    const values = [randomValue(random, 4), randomValue(random, 2)];
    const [first, second] = values.map(encodeMessagePack) as [Uint8Array, Uint8Array];
    const back = [...decodeMessagePackValues(Buffer.concat([first, second]))];
    if (isDeepStrictEqual(decodeMessagePack(first), values[0]) && isDeepStrictEqual(back, values)) continue;
    t.strictSame(back, values, `round ${round}`);
    return;
  }
  t.pass(`${ROUNDS} values`);
});

t.test("numbers keep their kind: an integer is one, in its shortest form, and anything else a double", async (t) => {
  const golden: [number, string][] = [
    [0, "00"],
    [127, "7f"],
    [128, "cc80"],
    [65_535, "cdffff"],
    [2 ** 32 - 1, "ceffffffff"],
    [2 ** 32, "cf0000000100000000"],
    [2 ** 53 - 1, "cf001fffffffffffff"],
    [2 ** 53, "cb4340000000000000"],
    [-1, "ff"],
    [-33, "d0df"],
    [-129, "d1ff7f"],
    [-(2 ** 31) - 1, "d3ffffffff7fffffff"],
    [-(2 ** 53 - 1), "d3ffe0000000000001"],
    [0.5, "cb3fe0000000000000"],
    [1e300, "cb7e37e43c8800759c"],
  ];
  for (const [number, bytes] of golden) {
    t.equal(hex(number), bytes, String(number));
    t.equal(decodeMessagePack(encodeMessagePack(number)), number, String(number));
  }
});

t.test("texts of any length and script, also with a byte order mark", async (t) => {
  for (const unit of ["a", "ä", "€", "😀", "\ufeff", "\ufffd", "\0"]) {
    for (const length of [1, 31, 32, 66, 200, 201, 255, 256, 70_000]) {
      const text = unit.repeat(length);
      const value = { [unit.repeat(Math.min(length, 300))]: [text, { text }], null: null, number: 1.5 };
      if (!isDeepStrictEqual(decodeMessagePack(encodeMessagePack(value)), value)) t.fail(`${length} times ${unit}`);
    }
  }
  t.pass("63 texts");
});

t.test("a property that is undefined is left out, and what JSON does not have is refused", async (t) => {
  t.equal(hex({ a: undefined, b: { c: undefined, d: [undefined, 1] } }), "81a16281a16492c001");
  for (const value of [1n, () => 1, Symbol("x")]) t.throws(() => encodeMessagePack({ before: "text", value }));
  t.equal(hex({ after: 1 }), "81a5616674657201");
});

t.test("what it gives is the caller's: neither the next value nor a large one changes it", async (t) => {
  const first = encodeMessagePack({ text: "first" });
  const large = encodeMessagePack({ text: "x".repeat(3_000_000) });
  encodeMessagePack({ text: "third" });
  t.same(decodeMessagePack(first), { text: "first" });
  t.equal((decodeMessagePack(large) as { text: string }).text.length, 3_000_000);
});

t.test("every cut of a value, a byte after one, and a list that claims too much are refused", async (t) => {
  const random = createRandom(seed);
  for (let round = 0; round < 40; round++) {
    const bytes = encodeMessagePack({ value: randomValue(random, 2) });
    const wrong = Array.from({ length: bytes.length }, (_, end) => bytes.subarray(0, end));
    for (const one of [Buffer.concat([bytes, Buffer.of(round)]), ...wrong]) {
      t.throws(() => decodeMessagePack(one), `round ${round}: ${one.length} of ${bytes.length} bytes`);
    }
  }
  const claims = ["ddffffffff", `dc0100${"dd0fffffff".repeat(256)}`, "dfffffffff", "dbffffffff", "91".repeat(500_000)];
  for (const claim of claims) t.throws(() => decodeMessagePack(Buffer.from(claim, "hex")), claim.slice(0, 20));
  t.throws(() => decodeMap(Buffer.from("c1", "hex")), RecordDecodeError);
  t.throws(() => decodeMap(encodeMessagePack([1])), RecordDecodeError);
});
