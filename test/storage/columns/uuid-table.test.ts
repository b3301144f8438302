import t from "tap";
import { formatUuidWords } from "../../../core/identifiers.js";
import { createRandom } from "../../../core/random.js";
import { UuidTable } from "../../../storage/columns/uuid-table.js";

const seed = Number(process.env.TEST_SEED ?? 20_250_702);

t.test("what is no canonical lower-case UUID is unknown, and refused as a key", async (t) => {
  const table = new UuidTable();
  const id = "01890a5d-ac96-774b-bcce-b302099a8057";
  table.set(id, 7);
  t.equal(table.get(id), 7);
  for (const text of [
    "",
    "x",
    id.toUpperCase(),
    id.slice(1),
    `${id}0`,
    id.replaceAll("-", ""),
    id.replace("-", "0"),
    id.replace("7", "g"),
    id.replace("7", "ſ"),
    id.replace("7", "\u0000"),
  ]) {
    t.equal(table.get(text), undefined, JSON.stringify(text));
    t.equal(table.has(text), false);
    t.throws(() => table.set(text, 1), RangeError);
    t.throws(() => table.enter(text), RangeError);
  }
  t.equal(table.size, 1);
});

t.test("ids that differ in one bit are different ids", async (t) => {
  const table = new UuidTable();
  const ids: string[] = [];
  for (let bit = 0; bit < 128; bit++) {
    const words = [0, 0, 0, 0];
    words[bit >>> 5] = (1 << (bit & 31)) >>> 0;
    ids.push(formatUuidWords(words[0]!, words[1]!, words[2]!, words[3]!));
  }
  for (const [value, id] of ids.entries()) table.set(id, value);
  t.equal(table.size, 128);
  t.same(
    ids.map((id) => table.get(id)),
    ids.map((_, value) => value),
  );
  table.mapValues((value) => 1000 - value);
  t.same(
    ids.map((id) => table.get(id)),
    ids.map((_, value) => 1000 - value),
  );
});

t.test(`answers as a plain Map does while it grows, seed ${seed}`, async (t) => {
  const random = createRandom(seed);
  const table = new UuidTable();
  const plain = new Map<string, number>();
  const ids: string[] = [];
  const entries = new Map<string, number>();
  let mismatches = 0;
  const newId = (): string => {
    // Ids of one millisecond with a counter, as a producer may make them: close together, not random.
    const counted = random.chance(0.5);
    const word = () => random.integer(0, 0xffff_ffff);
    return counted
      ? formatUuidWords(0x0189_0a5d, 0xac96_7000, 0x8000_0000, ids.length)
      : formatUuidWords(word(), word(), word(), word());
  };
  for (let i = 0; i < 60_000; i++) {
    const id = ids.length > 0 && random.chance(0.2) ? random.pick(ids) : newId();
    const value = random.chance(0.01) ? 0xffff_ffff : random.integer(0, 0xffff_ffff);
    const entry = entries.get(id) ?? ids.length;
    if (!plain.has(id)) ids.push(id);
    entries.set(id, entry);
    plain.set(id, value);
    if (random.chance(0.5)) {
      table.set(id, value);
    } else {
      if (table.enter(id) !== entry) mismatches++;
      table.setValueAt(table.entryOf(id), value);
    }
    if (table.valueAt(table.entryOf(id)) !== value) mismatches++;
    const probe = random.chance(0.3) ? newId() : random.pick(ids);
    if (table.get(probe) !== plain.get(probe)) mismatches++;
  }
  for (const [id, value] of plain) if (table.get(id) !== value) mismatches++;
  t.equal(table.size, plain.size);
  t.comment(`${plain.size} ids, ${mismatches} mismatches`);
  t.equal(mismatches, 0);
  t.ok(table.bytesUsed / table.size < 40, `${Math.round(table.bytesUsed / table.size)} bytes an entry`);
});
