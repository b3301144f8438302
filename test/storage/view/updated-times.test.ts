import t from "tap";
import { createRandom } from "../../../core/random.js";
import { BLOCK_RUNS, UpdatedTimes } from "../../../storage/view/updated-times.js";

const seed = Number(process.env.TEST_SEED ?? 20_250_705);

/** Compares every block with a sort of the plain times; `ties` lets times repeat and move back. */
function mismatchesOf(ties: boolean): { queries: number; mismatches: number } {
  const random = createRandom(seed);
  const times = new UpdatedTimes();
  const plain: number[] = [];
  let clockUs = 1_700_000_000_000_000;
  let queries = 0;
  let mismatches = 0;
  for (let step = 0; step < 12_000; step++) {
    clockUs += ties ? random.integer(-3, 3) : random.integer(1, 1000);
    if (plain.length === 0 || random.chance(0.3)) {
      times.push(clockUs);
      plain.push(clockUs);
    } else {
      const ordinal = random.chance(0.7)
        ? Math.max(0, plain.length - 1 - random.integer(0, 20))
        : random.integer(0, plain.length - 1);
      times.set(ordinal, clockUs);
      plain[ordinal] = clockUs;
    }
    if (step % 37 !== 0) continue;
    const afterUs = random.pick(plain) + random.integer(-1, 1);
    for (let block = 0; block < times.blockCount; block++) {
      const expected: number[] = [];
      const end = Math.min(plain.length, (block + 1) * BLOCK_RUNS);
      for (let ordinal = end - 1; ordinal >= block * BLOCK_RUNS; ordinal--) {
        if (plain[ordinal]! > afterUs) expected.push(ordinal);
      }
      const visited: number[] = [];
      times.forEachInBlockDescending(block, afterUs, (ordinal) => visited.push(ordinal));
      queries += 2;
      if (times.countInBlock(block, afterUs) !== expected.length) mismatches++;
      if (String(visited) !== String(expected)) mismatches++;
    }
  }
  for (const [ordinal, timeUs] of plain.entries()) if (times.timeUs(ordinal) !== timeUs) mismatches++;
  return { queries, mismatches };
}

t.test(`counts and runs of each block equal a plain filter's, seed ${seed}`, async (t) => {
  for (const ties of [false, true]) {
    const { queries, mismatches } = mismatchesOf(ties);
    t.comment(
      `${ties ? "times that repeat and step back" : "ascending times"}: ${queries} queries, ${mismatches} mismatches`,
    );
    t.equal(mismatches, 0);
  }
});
