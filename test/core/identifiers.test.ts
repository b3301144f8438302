import t from "tap";
import {
  canonicalUuid,
  generateUuidV7,
  isUuidV7,
  readUuid,
  UUID_V7_INPUT_PATTERN,
  UUID_V7_PATTERN,
  uuidToBytes,
  uuidV7TimeMs,
  uuidV7TimeUs,
  withCanonicalUuids,
  writeUuid,
} from "../../core/identifiers.js";
import { createRandom } from "../../core/random.js";
import { TIME_LIMIT_US } from "../../core/timestamps.js";

const seed = Number(process.env.TEST_SEED ?? 20261120);
t.comment(`TEST_SEED=${seed}`);

const MS = 1_795_200_000_123;
const zeros = new Uint8Array(10);
const ones = new Uint8Array(10).fill(0xff);

t.test("layout: 48 bits of milliseconds, version 7, variant 10", async (t) => {
  // The example of RFC 9562, appendix A.6: 2022-02-22 14:22:22.00 GMT-05:00.
  const random = Uint8Array.from([0x0c, 0xc3, 0x18, 0xc4, 0xdc, 0x0c, 0x0c, 0x07, 0x39, 0x8f]);
  t.equal(generateUuidV7(0x017f22e279b0, random), "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
  t.equal(uuidV7TimeMs("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"), Date.parse("2022-02-22T19:22:22Z"));
  t.equal(uuidV7TimeUs("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"), Date.parse("2022-02-22T19:22:22Z") * 1000);
  t.equal(generateUuidV7(0, zeros), "00000000-0000-7000-8000-000000000000");
  t.equal(generateUuidV7(TIME_LIMIT_US / 1000 - 1, ones), "082f79cd-8fff-7fff-bfff-ffffffffffff");
});

t.test("a time that no clock can be right about counts as 1970, so that a right one takes over again", async (t) => {
  const before = generateUuidV7(MS, ones);
  const glitches = [
    -1,
    -1e15,
    TIME_LIMIT_US / 1000,
    2 ** 48,
    2 ** 48 + MS,
    8.64e15,
    Number.NaN,
    Number.POSITIVE_INFINITY,
  ];
  for (const glitch of glitches) {
    t.equal(generateUuidV7(glitch, zeros), "00000000-0000-7000-8000-000000000000", String(glitch));
    const during = generateUuidV7(glitch, zeros, before);
    t.ok(isUuidV7(during) && during > before && uuidV7TimeMs(during) <= MS + 1, `${glitch} counts on`);
    t.equal(uuidV7TimeMs(generateUuidV7(MS + 2, zeros, during)), MS + 2, "and ends with the glitch");
  }
});

t.test("only canonical lower-case UUIDv7 texts are ids", async (t) => {
  const id = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";
  t.ok(isUuidV7(id));
  for (const variant of "89ab") t.ok(isUuidV7(id.replace("-98", `-${variant}8`)), `variant ${variant}`);
  for (const wrong of [
    "",
    id.toUpperCase(),
    id.replace("-7cc3", "-4cc3"),
    id.replace("-98", "-78"),
    id.replace("-98", "-c8"),
    id.replaceAll("-", ""),
    `{${id}}`,
    `${id} `,
    `${id}\n`,
    ` ${id}`,
    id.slice(1),
    id.replace("0", "g"),
    id.replace("0", "０"),
  ]) {
    t.notOk(isUuidV7(wrong), JSON.stringify(wrong));
    t.notMatch(wrong, new RegExp(UUID_V7_PATTERN), "the pattern says the same");
  }
});

t.test("a UUID in either case has one canonical text", async (t) => {
  const random = createRandom(seed);
  let last: string | null = null;
  for (let i = 0; i < 2_000; i++) {
    last = generateUuidV7(MS + i, random.bytes(10), last);
    const id: string = last;
    const mixed = [...id].map((digit) => (random.chance(0.5) ? digit.toUpperCase() : digit)).join("");
    if (canonicalUuid(mixed) !== id) return void t.fail(`${mixed} is ${canonicalUuid(mixed)}`);
    if (!new RegExp(UUID_V7_INPUT_PATTERN).test(mixed)) return void t.fail(`${mixed} does not fit the pattern`);
    if (withCanonicalUuids(`/A/${mixed}?x=${mixed}&y=AB-CD`) !== `/A/${id}?x=${id}&y=AB-CD`) return void t.fail(mixed);
  }
  const v4 = "F47AC10B-58CC-4372-A567-0E02B2C3D479";
  t.equal(canonicalUuid(v4), v4.toLowerCase(), "of any version");
  t.notMatch(v4, new RegExp(UUID_V7_INPUT_PATTERN));
  for (const wrong of [
    `{${v4}}`,
    `urn:uuid:${v4}`,
    v4.replaceAll("-", ""),
    ` ${v4}`,
    `${v4}\n`,
    v4.replace("0", "O"),
    "",
  ]) {
    t.equal(canonicalUuid(wrong), undefined, JSON.stringify(wrong));
  }
});

t.test("ids ascend through a clock that jumps back and stands still", async (t) => {
  const random = createRandom(seed);
  let last: string | null = null;
  let timeMs = MS;
  for (let i = 0; i < 20_000; i++) {
    timeMs += random.pick([0, 0, 0, 1, 1, 7, -1, -5000, 4000]);
    const id: string = generateUuidV7(timeMs, random.chance(0.1) ? ones : random.bytes(10), last);
    if (!isUuidV7(id) || (last !== null && id <= last)) return void t.fail(`${id} after ${last}`);
    if (last !== null && Buffer.compare(uuidToBytes(id), uuidToBytes(last)) !== 1) return void t.fail("order as bytes");
    last = id;
  }
  t.pass("20000 ids");
});

t.test("counting on carries around the version and the variant", async (t) => {
  const cases = [
    ["017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "017f22e2-79b0-7cc3-98c4-dc0c0c073990"],
    ["017f22e2-79b0-7cc3-98c4-ffffffffffff", "017f22e2-79b0-7cc3-98c5-000000000000"],
    ["017f22e2-79b0-7cc3-98ff-ffffffffffff", "017f22e2-79b0-7cc3-9900-000000000000"],
    ["017f22e2-79b0-7cc3-bfff-ffffffffffff", "017f22e2-79b0-7cc4-8000-000000000000"],
    ["017f22e2-79b0-7cff-bfff-ffffffffffff", "017f22e2-79b0-7d00-8000-000000000000"],
    ["017f22e2-79b0-7fff-bfff-ffffffffffff", "017f22e2-79b1-7000-8000-000000000000"],
    ["017f22ff-ffff-7fff-bfff-ffffffffffff", "017f2300-0000-7000-8000-000000000000"],
  ] as const;
  for (const [after, next] of cases) t.equal(generateUuidV7(0, zeros, after), next);
  const after = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";
  t.equal(
    generateUuidV7(0x017f22e279b1, zeros, after),
    "017f22e2-79b1-7000-8000-000000000000",
    "a later time is taken",
  );
  t.equal(generateUuidV7(1, zeros, null), generateUuidV7(1, zeros), "null is no id before");
});

t.test("bytes and text agree, at any offset, and so does their order", async (t) => {
  const random = createRandom(seed + 1);
  const target = new Uint8Array(64);
  for (let i = 0; i < 2_000; i++) {
    const a = generateUuidV7(random.integer(0, 2 ** 41), random.bytes(10));
    const b = generateUuidV7(random.integer(0, 2 ** 41), random.bytes(10));
    const offset = random.integer(0, 48);
    target.fill(0x5a);
    writeUuid(a, target, offset);
    if (readUuid(target, offset) !== a) return void t.fail(a);
    if (target.some((byte, at) => (at < offset || at >= offset + 16) && byte !== 0x5a))
      return void t.fail("wrote beside");
    if (Buffer.from(uuidToBytes(a)).toString("hex") !== a.replaceAll("-", "")) return void t.fail(a);
    const asText = a < b ? -1 : a > b ? 1 : 0;
    if (Buffer.compare(uuidToBytes(a), uuidToBytes(b)) !== asText) return void t.fail(`${a} ${b}`);
  }
  t.pass("2000 pairs");
});
