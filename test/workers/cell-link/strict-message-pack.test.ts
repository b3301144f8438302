import { isDeepStrictEqual } from "node:util";
import { encode } from "@msgpack/msgpack";
import t from "tap";
import type { JsonValue } from "../../../core/json/json.js";
import { createRandom, type Random } from "../../../core/random.js";
import { decodeBody } from "../../../workers/cell-link/strict-message-pack.js";

const seed = Number(process.env.TEST_SEED ?? 20261120);
t.comment(`TEST_SEED=${seed}`);

function randomValue(random: Random, depth: number): JsonValue {
  switch (random.integer(0, depth > 4 ? 4 : 6)) {
    case 0:
      return random.pick([null, true, false]);
    case 1:
      // No -0, which MessagePack's integers do not have.
      return Math.trunc((random.next() - 0.5) * 2 ** random.integer(1, 53)) + 0;
    case 2:
      return random.normal() * 10 ** random.integer(-300, 300);
    case 3:
      return random.pick(["", "a", "µm und Grüße", "日本", "😀", "x".repeat(random.integer(30, 300))]);
    case 4:
      return random.pick([127, 128, 255, 256, 65_535, 65_536, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1, -32, -33, -(2 ** 31)]);
    case 5:
      return Array.from({ length: random.integer(0, 20) }, () => randomValue(random, depth + 1));
    default:
      return randomMap(random, depth);
  }
}

function randomMap(random: Random, depth: number): { [key: string]: JsonValue } {
  const map: { [key: string]: JsonValue } = {};
  for (let n = random.integer(0, 18); n > 0; n--) map[`k${random.integer(0, 99)}`] = randomValue(random, depth + 1);
  return map;
}

t.test("reads what the library writes", async (t) => {
  const random = createRandom(seed);
  for (let round = 0; round < 500; round++) {
    const body = randomMap(random, 0);
    const decoded = decodeBody(encode(body));
    if (!decoded.ok || !isDeepStrictEqual(decoded.body, body)) {
      t.strictSame(decoded, { ok: true, body }, `round ${round}`);
      return;
    }
  }
  t.pass("500 bodies");
});

t.test("what JSON cannot say exactly is a fault with its path", async (t) => {
  const bytes = (text: string): Uint8Array => Buffer.from(text.replaceAll(" ", ""), "hex");
  const cases: [string, Uint8Array, string, RegExp][] = [
    ["empty", bytes(""), "", /map/],
    ["an array", bytes("90"), "", /map/],
    ["a string", encode("run.start"), "", /map/],
    ["bytes after the map", bytes("80 c0"), "", /nothing after/],
    ["cut off", encode({ a: "hello" }).subarray(0, 5), "/a", /bytes left/],
    ["bin", encode({ a: [1, new Uint8Array(3)] }), "/a/1", /no bin/],
    ["ext", encode({ a: { "b/c": new Date(0) } }), "/a/b~1c", /no bin or ext/],
    ["never used", bytes("81 a161 c1"), "/a", /JSON/],
    ["NaN", encode({ a: [Number.NaN] }), "/a/0", /finite/],
    ["infinity", encode({ a: Number.NEGATIVE_INFINITY }), "/a", /finite/],
    ["f32 NaN", bytes("81 a161 ca7fc00000"), "/a", /finite/],
    ["uint64", bytes("81 a161 cf0020000000000001"), "/a", /2\^53/],
    ["int64", bytes("81 a161 d38000000000000000"), "/a", /2\^53/],
    ["number key", bytes("81 a161 81 01 02"), "/a", /string keys/],
    ["nil key", bytes("81 c0 02"), "", /string keys/],
    ["key twice", bytes("82 a161 01 a161 02"), "", /each key once/],
    ["__proto__", bytes("81 a9 5f5f70726f746f5f5f 80"), "", /any other key/],
    ["not UTF-8", bytes("81 a161 a2 c328"), "/a", /UTF-8/],
    ["a surrogate in UTF-8", bytes("81 a161 a3 eda080"), "/a", /UTF-8/],
    // Read as text, each of its bytes would be one character.
    ["long and not UTF-8", Buffer.concat([bytes("81 a161 d946"), Buffer.alloc(69, 0x61), bytes("ff")]), "/a", /UTF-8/],
    ["long and none of it UTF-8", Buffer.concat([bytes("81 a161 d946"), Buffer.alloc(70, 0x80)]), "/a", /UTF-8/],
    ["an array of 4 billion", bytes("81 a161 ddffffffff"), "/a", /bytes left/],
    ["a map of 4 billion", bytes("dfffffffff"), "", /bytes left/],
    ["a string of 4 GB", bytes("81 a161 dbffffffff"), "/a", /bytes left/],
    ["33 levels", Buffer.concat([bytes("81 a161"), Buffer.alloc(32, 0x91)]), `/a${"/0".repeat(31)}`, /32 levels/],
    ["deep", Buffer.concat([bytes("81 a161"), Buffer.alloc(500_000, 0x91)]), `/a${"/0".repeat(31)}`, /32 levels/],
  ];
  for (const [name, body, path, allowed] of cases) {
    const decoded = decodeBody(body);
    t.match(decoded, { ok: false, fault: { params: { path, allowed } } }, name);
  }
});

t.test("32 levels are read", async (t) => {
  const decoded = decodeBody(Buffer.concat([Buffer.from("81a161", "hex"), Buffer.alloc(30, 0x91), Buffer.of(0x90)]));
  t.ok(decoded.ok);
});

t.test("texts of any length and script, and what stands in place of broken ones elsewhere", async (t) => {
  for (const unit of ["a", "\ufffd", "\ufeff", "é", "日", "😀", "\0"]) {
    for (const length of [1, 31, 32, 63, 64, 65, 66, 300, 70_000]) {
      const body = { [unit.repeat(Math.min(length, 300))]: unit.repeat(length) };
      const decoded = decodeBody(encode(body));
      if (!decoded.ok || !isDeepStrictEqual(decoded.body, body)) t.fail(`${length} times ${unit}`);
    }
  }
  t.pass("63 texts");
});
