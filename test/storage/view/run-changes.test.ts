import t from "tap";
import { createRandom } from "../../../core/random.js";
import type { RunStatus } from "../../../core/run/run-state.js";
import { mayHaveBeen, StatusTimes } from "../../../storage/view/changes/status-times.js";
import { UpdatedTimes } from "../../../storage/view/updated-times.js";

const seed = Number(process.env.TEST_SEED ?? 20_261_126);

t.test(`the earliest updates after a mark are those of a plain sort (seed ${seed})`, async (t) => {
  const random = createRandom(seed);
  const times = new UpdatedTimes();
  const model: number[] = [];
  let nowUs = 1;
  let queries = 0;
  let wrong = 0;
  for (let step = 0; step < 6_000; step++) {
    nowUs += random.integer(1, 3);
    const changed = model.length === 0 || random.chance(0.5) ? model.length : random.integer(0, model.length - 1);
    if (changed === model.length) times.push(nowUs);
    else times.set(changed, nowUs);
    model[changed] = nowUs;
    if (step % 20 > 0) continue;
    const afterUs = random.pick([0, random.integer(0, nowUs), nowUs - random.integer(0, 40)]);
    const limit = random.pick([1, 7, 128]);
    const expected = [...model.entries()]
      .filter(([, timeUs]) => timeUs > afterUs)
      .sort(([, a], [, b]) => a - b)
      .slice(0, limit);
    queries++;
    if (times.earliestAfter(afterUs, limit).join() !== expected.map(([ordinal]) => ordinal).join()) wrong++;
  }
  t.equal(times.latestUs, nowUs);
  t.equal(wrong, 0);
  t.comment(`${model.length} runs, ${queries} queries, ${wrong} mismatches`);
});

t.test("since when a run has its status: known for the latest, bounded for all others", async (t) => {
  const times = new StatusTimes();
  times.changed(1, 50);
  t.equal(times.sinceUs(1), Number.POSITIVE_INFINITY, "nothing is known while the store is read");
  times.begin(100);
  t.equal(times.sinceUs(1), 100);
  times.changed(1, 150);
  t.equal(times.sinceUs(1), 150);
  for (let run = 2; run < 40_000; run++) times.changed(run, 200 + run);
  t.equal(times.sinceUs(39_999), 40_199);
  t.ok(times.sinceUs(1) >= 150, "a forgotten run has had it no later than this");
  t.ok(times.sinceUs(1) < times.sinceUs(39_999));
});

t.test("a run goes through its statuses in their order, and stays in a terminal one", async (t) => {
  const table: [wanted: string, now: RunStatus, may: boolean][] = [
    ["pending", "running", true],
    ["running", "completed", true],
    ["finalizing", "cancelled", true],
    ["running", "pending", false],
    ["completed", "failed", false],
    ["no-such-status", "failed", false],
  ];
  for (const [wanted, now, may] of table) t.equal(mayHaveBeen(wanted, now), may, `${wanted}, now ${now}`);
});
