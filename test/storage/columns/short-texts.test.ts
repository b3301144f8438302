import t from "tap";
import { createRandom } from "../../../core/random.js";
import { SHORT_TEXT_BYTES, ShortTexts } from "../../../storage/columns/short-texts.js";

const seed = Number(process.env.TEST_SEED ?? 20261122);
t.comment(`TEST_SEED=${seed}`);

t.test("every text is that of its bytes, however many came before it and in whatever order", async (t) => {
  const random = createRandom(seed);
  // More than there are slots, so that texts push each other out, and some that differ in one character.
  const texts = Array.from({ length: 3_000 }, (_, nth) => {
    const length = random.integer(0, SHORT_TEXT_BYTES);
    return nth % 3 === 0
      ? `${"k".repeat(random.integer(0, 60))}${nth % 7}`
      : String.fromCharCode(...Array.from({ length }, () => random.integer(0, 127)));
  });
  for (const use of ["keys", "values"] as const) {
    const read = new ShortTexts(use);
    for (let round = 0; round < 20_000; round++) {
      const text = random.pick(texts);
      const before = "ä".repeat(random.integer(0, 3));
      const bytes = Buffer.from(`${before}${text}ö`);
      const start = Buffer.byteLength(before);
      const found = read.read(bytes, start, start + text.length);
      if (found !== text) {
        t.equal(found, text, `${use}, round ${round}`);
        return;
      }
    }
  }
  t.pass("40,000 texts");
});

t.test("bytes that are not all ASCII are not read, nor taken for a text that was", async (t) => {
  const read = new ShortTexts("values");
  t.equal(read.read(Buffer.from("abc"), 0, 3), "abc");
  for (const text of ["é", "aé", "日本", "\u0080"]) {
    const bytes = Buffer.from(text);
    t.equal(read.read(bytes, 0, bytes.length), undefined, text);
  }
  t.equal(read.read(Buffer.from([0x61, 0xff, 0x63]), 0, 3), undefined);
  t.equal(read.read(Buffer.from("abc"), 0, 3), "abc");
  t.equal(read.read(Buffer.from("__proto__"), 0, 9), "__proto__");
});

t.test("a name of a property that was read is that name", async (t) => {
  const read = new ShortTexts("keys");
  for (const key of ["__proto__", "constructor", "0", "-1", "", "run_id"]) {
    const bytes = Buffer.from(key);
    t.equal(read.read(bytes, 0, bytes.length), key);
    t.equal(read.read(bytes, 0, bytes.length), key, "and again");
  }
});
