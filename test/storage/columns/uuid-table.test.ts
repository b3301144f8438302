import t from "tap";
import { formatUuidWords } from "../../../core/identifiers.js";
import { createRandom } from "../../../core/random.js";
import { UuidTable } from "../../../storage/columns/uuid-table.js";
import { heldBufferBytes } from "../../helpers/process/held-memory.js";

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
  const before = heldBufferBytes();
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
  const bytes = (heldBufferBytes() - before) / table.size;
  t.ok(bytes < 40, `${Math.round(bytes)} bytes an entry`);
});

t.test(`ids that mostly ascend answer as a plain Map does, whichever come late or again, seed ${seed}`, async (t) => {
  const random = createRandom(seed + 1);
  const table = new UuidTable();
  const plain = new Map<string, number>();
  const idOf = (nth: number) => formatUuidWords(0x0189_0a5d, nth >>> 8, 0x8000_0000 | nth, 0xffff_ffff - nth);
  let mismatches = 0;
  for (let newest = 0, i = 0; i < 40_000; i++) {
    // Now and then an id is left out, which comes later or never.
    newest += random.integer(1, 3);
    const id = idOf(random.chance(0.2) ? Math.max(0, newest - random.integer(0, 60)) : newest);
    const entry = plain.get(id) ?? plain.size;
    plain.set(id, entry);
    if (table.enter(id) !== entry || table.idAt(entry) !== id) mismatches++;
    const probe = idOf(random.integer(0, newest + 10));
    if (table.entryOf(probe) !== (plain.get(probe) ?? -1)) mismatches++;
  }
  for (const [id, entry] of plain) if (table.entryOf(id) !== entry) mismatches++;
  t.equal(table.size, plain.size);
  t.equal(mismatches, 0);
});

t.test("ids that ascend take no slots, and are found when others have come late", async (t) => {
  const before = heldBufferBytes();
  const table = new UuidTable();
  const idOf = (nth: number) => formatUuidWords(0x0189_0a5d, 0, nth, 0);
  const count = 100_000;
  for (let nth = 1; nth <= count; nth++) table.set(idOf(2 * nth), nth);
  const bytes = (heldBufferBytes() - before) / count;
  t.ok(bytes < 26, `${Math.round(bytes)} bytes an entry`);
  t.equal(table.enter(idOf(7)), count);
  t.equal(table.enter(idOf(7)), count);
  t.equal(table.get(idOf(2 * count)), count);
  t.equal(table.get(idOf(2)), 1);
  t.notOk(table.has(idOf(1)) || table.has(idOf(9)) || table.has(idOf(2 * count + 1)));
});
