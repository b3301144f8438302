import t from "tap";
import { createRandom } from "../../../core/random.js";
import { HashSlots } from "../../../storage/columns/hash-slots.js";
import { TextTable } from "../../../storage/columns/text-table.js";

const seed = Number(process.env.TEST_SEED ?? 20_250_704);

t.test("texts are told apart in full: prefixes, the empty text, other scripts, a long one", async (t) => {
  const table = new TextTable();
  const texts = [
    "",
    "a",
    "ab",
    "b",
    "a\u0000",
    "ä",
    "a\u0308",
    "日本",
    "\ufeffa",
    "😀",
    "x".repeat(200_000),
    `${"x".repeat(199_999)}y`,
  ];
  t.same(
    texts.map((text) => table.find(text)),
    texts.map(() => -1),
  );
  for (const round of [1, 2]) {
    t.same(
      texts.map((text) => table.findOrAdd(text)),
      texts.map((_, ordinal) => ordinal),
      `round ${round}`,
    );
  }
  t.equal(table.size, texts.length);
  t.same(
    texts.map((_, ordinal) => table.text(ordinal)),
    texts,
  );
});

t.test(`answers as a plain Map does while it grows, seed ${seed}`, async (t) => {
  const random = createRandom(seed);
  const table = new TextTable();
  const plain = new Map<string, number>();
  let mismatches = 0;
  for (let i = 0; i < 50_000; i++) {
    const text = `${random.pick(["SN", "PART-", "", "号"])}${random.integer(0, 30_000)}`;
    if (table.find(text) !== (plain.get(text) ?? -1)) mismatches++;
    if (random.chance(0.6)) {
      if (!plain.has(text)) plain.set(text, plain.size);
      if (table.findOrAdd(text) !== plain.get(text)) mismatches++;
    }
  }
  t.comment(`${plain.size} texts, ${mismatches} mismatches`);
  t.equal(table.size, plain.size);
  t.equal(mismatches, 0);
});

t.test("entries that all have one hash are still told apart, before, while and after the slots move", async (t) => {
  let key = 0;
  const slots = new HashSlots({ hashOf: () => 0xffff_ffff, hasKey: (entry) => entry === key });
  for (let entry = 0; entry < 600; entry++) {
    key = entry;
    t.equal(slots.find(0xffff_ffff), -1) || t.bailout();
    slots.add(0xffff_ffff, entry);
    key = entry >>> 1;
    if (slots.find(0xffff_ffff) !== key) t.fail(`entry ${key} of ${entry} is lost`);
  }
});

t.test(`an unknown entry looks at next to no other, and growth asks for hashes in order, seed ${seed}`, async (t) => {
  const random = createRandom(seed + 1);
  const hashes: number[] = [];
  let [looks, asked, mostAsked, isInOrder] = [0, 0, 0, true];
  let last = -1;
  const slots = new HashSlots({
    hashOf: (entry) => {
      asked++;
      isInOrder &&= entry === last + 1 || entry === 0;
      last = entry;
      return hashes[entry]!;
    },
    hasKey: () => {
      looks++;
      return false;
    },
  });
  const count = 40_000;
  for (let entry = 0; entry < count; entry++) {
    const hash = random.integer(0, 0xffff_ffff);
    slots.find(hash);
    asked = 0;
    hashes.push(hash);
    slots.add(hash, entry);
    mostAsked = Math.max(mostAsked, asked);
  }
  t.ok(looks < count / 10, `${looks} looks for ${count} that were not there`);
  t.equal(mostAsked, 2);
  t.ok(isInOrder);
});
