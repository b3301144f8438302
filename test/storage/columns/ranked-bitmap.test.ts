import t from "tap";
import { createRandom } from "../../../core/random.js";
import { RankedBitmap } from "../../../storage/columns/ranked-bitmap.js";

const seed = Number(process.env.TEST_SEED ?? 20_250_701);

t.test("an empty bitmap counts nothing", async (t) => {
  const bitmap = new RankedBitmap();
  t.equal(bitmap.size, 0);
  t.equal(bitmap.rank(0), 0);
  t.equal(bitmap.rank(1_000_000), 0);
  t.equal(bitmap.has(5_000_000), false);
  bitmap.forEachDescending(-1, 10, () => t.fail("nothing to visit"));
});

t.test("setting and clearing twice counts once, also across growth", async (t) => {
  const bitmap = new RankedBitmap();
  for (const position of [31, 0, 511, 512, 70_000, 31]) bitmap.set(position);
  t.equal(bitmap.size, 5);
  t.same(
    [0, 1, 2, 3, 4].map((rank) => bitmap.select(rank)),
    [0, 31, 511, 512, 70_000],
  );
  bitmap.clear(31);
  bitmap.clear(31);
  bitmap.clear(1_000_000);
  t.equal(bitmap.size, 4);
  t.equal(bitmap.rank(512), 2);
  t.equal(bitmap.rank(70_001), 4);
});

t.test(`rank, select and descent equal a plain set's, seed ${seed}`, async (t) => {
  const random = createRandom(seed);
  let mismatches = 0;
  let queries = 0;
  // Dense, mixed and sparse: descent then stays in a word, crosses words, or leaves the block.
  for (const [size, setChance] of [
    [3_000, 0.95],
    [9_000, 0.3],
    [60_000, 0.001],
  ] as const) {
    const bitmap = new RankedBitmap();
    const plain = new Set<number>();
    for (let round = 0; round < 20; round++) {
      for (let i = 0; i < size / 10; i++) {
        const position = random.integer(0, size - 1);
        if (random.chance(setChance)) {
          bitmap.set(position);
          plain.add(position);
        } else {
          bitmap.clear(position);
          plain.delete(position);
        }
      }
      const sorted = [...plain].sort((a, b) => a - b);
      queries++;
      if (bitmap.size !== sorted.length) mismatches++;
      for (let i = 0; i < 50; i++) {
        const position = random.integer(0, size + 600);
        const rank = sorted.filter((one) => one < position).length;
        queries += 2;
        if (bitmap.rank(position) !== rank) mismatches++;
        if (bitmap.has(position) !== plain.has(position)) mismatches++;
        if (sorted.length === 0) continue;
        const at = random.integer(0, sorted.length - 1);
        const limit = random.integer(0, 300);
        const visited: number[] = [];
        bitmap.forEachDescending(at, limit, (one) => visited.push(one));
        queries += 2;
        if (bitmap.select(at) !== sorted[at]) mismatches++;
        if (String(visited) !== String(sorted.slice(Math.max(0, at - limit + 1), at + 1).reverse())) mismatches++;
      }
    }
  }
  t.comment(`${queries} queries, ${mismatches} mismatches`);
  t.equal(mismatches, 0);
});
