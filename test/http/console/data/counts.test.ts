import t from "tap";
import { countSince } from "../../../../http/console/data/counts.js";

/** A list of runs, newest first: two of them are created in each millisecond, and the oldest at 0. */
function list(total: number) {
  const asked: number[] = [];
  const createdMs = (offset: number): number => Math.floor((total - 1 - offset) / 2);
  const look = async (offset: number) => {
    asked.push(offset);
    const runs = offset < total ? [{ created_at: new Date(createdMs(offset)).toISOString() }] : [];
    return { total, runs };
  };
  const all = Array.from({ length: total }, (_, offset) => createdMs(offset));
  return { look, asked, since: (ms: number) => all.filter((created) => created >= ms).length };
}

t.test("runs since a time are counted as if all were looked at, wherever the search begins", async (t) => {
  for (let total = 0; total <= 12; total++) {
    const runs = list(total);
    for (let ms = -1; ms <= total / 2 + 1; ms++) {
      for (let guess = 0; guess <= total + 2; guess++) {
        const found = await countSince(runs.look, ms, guess);
        if (found !== runs.since(ms)) t.equal(found, runs.since(ms), `of ${total}, since ${ms} ms, from ${guess}`);
      }
    }
  }
});

t.test("a search among a million takes few looks, and two where it ended the last time", async (t) => {
  const { look, asked } = list(1_000_000);
  t.equal(await countSince(look, 499_000, 0), 2_000);
  t.ok(asked.length < 25, `${asked.length} looks`);
  asked.length = 0;
  t.equal(await countSince(look, 499_000, 2_000), 2_000);
  t.same(asked, [2_000, 1_999]);
});
