import t from "tap";
import { formatUuidWords } from "../../../core/identifiers.js";
import { createRandom } from "../../../core/random.js";
import { UuidColumn } from "../../../storage/columns/uuid-column.js";

const seed = Number(process.env.TEST_SEED ?? 20_250_703);

t.test("ids come back by row and by search, in ascending order only", async (t) => {
  const column = new UuidColumn();
  t.equal(column.indexOf("01890a5d-ac96-774b-bcce-b302099a8057"), -1, "nothing in an empty column");
  column.push("01890a5d-ac96-774b-bcce-b302099a8057");
  // Above only as unsigned words: a signed comparison would put it below.
  column.push("f1890a5d-ac96-774b-bcce-b302099a8057");
  t.throws(() => column.push("f1890a5d-ac96-774b-bcce-b302099a8057"), /not above the last one/);
  t.throws(() => column.push("01890a5d-ac96-774b-bcce-b302099a8058"), /not above the last one/);
  t.throws(() => column.push("no id"), /not a canonical UUID/);
  t.equal(column.length, 2);
  t.equal(column.at(1), "f1890a5d-ac96-774b-bcce-b302099a8057");
  t.equal(column.indexOf("F1890A5D-ac96-774b-bcce-b302099a8057"), -1);
});

t.test(`every id is found, no other is, seed ${seed}`, async (t) => {
  const random = createRandom(seed);
  const ids = new Set<string>();
  const word = () => random.integer(0, 0xffff_ffff);
  while (ids.size < 20_000) ids.add(formatUuidWords(0x0189_0a5d, random.integer(0, 3) << 16, word(), word()));
  const sorted = [...ids].sort();
  const column = new UuidColumn();
  for (const id of sorted.slice(0, 10_000)) column.push(id);
  const wrong = sorted.filter((id, row) => column.indexOf(id) !== (row < 10_000 ? row : -1));
  t.same(wrong, []);
  t.same(
    sorted.slice(0, 10_000).filter((id, row) => column.at(row) !== id),
    [],
  );
});
