import { decode, Encoder } from "@msgpack/msgpack";
import t from "tap";
import { createRandom } from "../../../core/random.js";
import { decodeMessagePack, messagePackField, messagePackParts } from "../../../storage/records/message-pack.js";
import { MessagePackEncoder } from "../../../storage/records/message-pack-encoder.js";
import { randomText, randomValue } from "../../helpers/random-values.js";

const seed = Number(process.env.TEST_SEED ?? 20261121);
t.comment(`TEST_SEED=${seed}`);

const encoder = new MessagePackEncoder();
const library = new Encoder();

function isSame(value: unknown): boolean {
  return Buffer.from(encoder.encode(value)).equals(library.encode(value));
}

t.test("each form of each type, on both sides of its limits, as the library encodes it", (t) => {
  const numbers = [0, -0, 0.5, -0.5, 1e300, 5e-324, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const power of [5, 7, 8, 15, 16, 31, 32, 33, 52, 53, 54, 63, 64]) {
    for (const step of [-1, 0, 1]) numbers.push(2 ** power + step, -(2 ** power) + step);
  }
  for (const number of numbers) t.ok(isSame(number), `${number}`);
  const lengths = [0, 1, 15, 16, 17, 31, 32, 33, 84, 85, 86, 127, 128, 254, 255, 256, 65_534, 65_535, 65_536, 70_000];
  for (const length of lengths) {
    for (const unit of ["a", "ä", "€", "😀", "\ufeff", "\0"])
      t.ok(isSame(unit.repeat(length)), `${length} times ${unit}`);
    t.ok(isSame(`${"a".repeat(length)}ä`), `${length} ASCII and another`);
    t.ok(isSame(Array.from({ length }, () => true)), `an array of ${length}`);
    t.ok(isSame(Object.fromEntries(Array.from({ length }, (_, at) => [`${at}`, null]))), `a map of ${length}`);
  }
  t.end();
});

t.test("an undefined property is null, or left out if asked for", (t) => {
  const value = { a: undefined, b: { c: undefined, d: [undefined, 1] } };
  t.ok(isSame(value));
  const omitting = new MessagePackEncoder({ omitsUndefined: true });
  t.same(decode(omitting.encode(value)), { b: { d: [null, 1] } });
  t.same(omitting.encode(value), new Encoder({ ignoreUndefined: true }).encode(value));
  t.end();
});

t.test("what JSON does not have is refused, and the next value is not touched by it", (t) => {
  for (const value of [1n, () => 1, Symbol("x"), new Date(0), new Uint8Array(1), new Map()]) {
    t.throws(() => encoder.encode({ before: "text", value }), TypeError);
    t.ok(isSame({ after: 1 }));
  }
  t.end();
});

t.test("what it gives is the caller's: neither the next value nor a large one changes it", (t) => {
  const first = encoder.encode({ text: "first" });
  const large = encoder.encode({ text: "x".repeat(3_000_000) });
  encoder.encode({ text: "third" });
  t.same(decode(first), { text: "first" });
  t.equal((decode(large) as { text: string }).text.length, 3_000_000);
  const shared = encoder.encodeShared([1, 2]);
  t.same(decode(shared), [1, 2]);
  t.end();
});

t.test("random values are encoded to the library's bytes", (t) => {
  const random = createRandom(seed);
  let wrong = 0;
  for (let at = 0; at < 5_000; at++) if (!isSame(randomValue(random, 4))) wrong++;
  t.equal(wrong, 0);
  t.end();
});

t.test("a field is found by skipping what stands before it, and a cut before its end is refused", (t) => {
  const random = createRandom(seed);
  const field = (bytes: Uint8Array): unknown => {
    const found = messagePackField(bytes, ["run", "emitted"]);
    return found && decodeMessagePack(found);
  };
  let wrong = 0;
  for (let at = 0; at < 1_000; at++) {
    const emitted = randomValue(random, 3);
    const [before, behind] = [randomValue(random, 3), randomValue(random, 3)];
    const bytes = encoder.encode({
      other: before,
      run: { [randomText(random)]: before, emitted, z: behind },
      emitted: 1,
    });
    if (!Buffer.from(library.encode(field(bytes))).equals(library.encode(emitted))) wrong++;
    const end = bytes.length - library.encode({ z: behind, emitted: 1 }).length;
    const cut = bytes.subarray(0, random.integer(0, end));
    t.throws(() => field(cut));
  }
  t.equal(wrong, 0);
  for (const other of [1, [], {}, { run: 1 }, { run: { emitte: 1 } }, { emitted: 1 }]) {
    t.equal(field(encoder.encode(other)), undefined, JSON.stringify(other));
  }
  t.end();
});

t.test("the parts of an array or a map are its values, whatever they are, and a cut is refused", (t) => {
  const random = createRandom(seed);
  let wrong = 0;
  for (let at = 0; at < 200; at++) {
    const count = random.pick([0, 1, 15, 16, 300]);
    const values = Array.from({ length: count }, () => randomValue(random, 2));
    const map = Object.fromEntries(values.map((value, nth) => [`${nth}`, value]));
    for (const [whole, parts] of [
      [values, values],
      [map, Object.entries(map).flat()],
    ]) {
      const bytes = encoder.encode(whole);
      const found = (messagePackParts(bytes) as Uint8Array[]).map((part) => library.encode(decodeMessagePack(part)));
      if (!Buffer.concat(found).equals(Buffer.concat((parts as unknown[]).map((part) => library.encode(part)))))
        wrong++;
      t.throws(() => messagePackParts(bytes.subarray(0, random.integer(0, bytes.length - 1))));
    }
  }
  t.equal(wrong, 0);
  for (const other of [1, "text", null, 0.5]) t.equal(messagePackParts(encoder.encode(other)), undefined);
  t.throws(() => messagePackParts(Buffer.from("dd7fffffff", "hex")), /promises|end/);
  t.end();
});
