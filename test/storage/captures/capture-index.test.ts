import t from "tap";
import { createRandom } from "../../../core/random.js";
import { CaptureIndex, type KeptCaptures, RETENTION_BATCH_RUNS } from "../../../storage/captures/capture-index.js";

const seed = Number(process.env.TEST_SEED ?? 20261120);
t.comment(`TEST_SEED=${seed}`);

/** Later than all runs but those from before the clock was set back. */
const NOW_US = 100_000;

function keptRun(createdAtUs: number, more: Partial<KeptCaptures> = {}): KeptCaptures {
  const location = { segmentBase: 1, offset: createdAtUs * 8, length: 64 };
  return { createdAtUs, completedAtUs: createdAtUs + 10, bytes: 100, location, ...more };
}

t.test("by bytes the oldest goes first, whichever ended first", async (t) => {
  const captureIndex = new CaptureIndex({ keepsRuns: true });
  for (const createdAtUs of [30, 10, 20]) captureIndex.keep(keptRun(createdAtUs));
  t.equal(captureIndex.next(null, 300, NOW_US), undefined, "as many as allowed");
  t.match(captureIndex.next(null, 299, NOW_US), { createdAtUs: 10, bytes: 100, location: { offset: 80 } });
  captureIndex.removed(10, "a", 50);
  t.match(captureIndex, { bytes: 200, runs: 2, oldestCreatedAtUs: 20 });
  t.equal(captureIndex.next(null, 200, NOW_US), undefined);
  t.match(captureIndex.next(null, 1, NOW_US), { createdAtUs: 20 });
});

t.test("by bytes, runs from before the clock was set back go before all that came since", async (t) => {
  const captureIndex = new CaptureIndex({ keepsRuns: true });
  for (const createdAtUs of [10, NOW_US + 500, NOW_US + 600, NOW_US]) captureIndex.keep(keptRun(createdAtUs));
  const order: (number | undefined)[] = [];
  for (let runs = 4; runs > 0; runs--) {
    const createdAtUs = captureIndex.next(null, 0, NOW_US)?.createdAtUs;
    order.push(createdAtUs);
    captureIndex.drop(createdAtUs ?? 0);
  }
  t.same(order, [NOW_US + 500, NOW_US + 600, 10, NOW_US]);
  t.match(captureIndex, { runs: 0, bytes: 0 });
});

t.test("what was removed last is known also where the clock was set back before", async (t) => {
  const captureIndex = new CaptureIndex({ keepsRuns: true });
  for (let at = 0; at < RETENTION_BATCH_RUNS; at++) captureIndex.removed(at, `ahead ${at}`, 10 * NOW_US + at);
  captureIndex.clockSet(NOW_US);
  const since = Array.from({ length: RETENTION_BATCH_RUNS - 1 }, (_, at) => `since ${at}`);
  for (const [at, runId] of since.entries()) captureIndex.removed(1_000 + at, runId, NOW_US + 1 + at);
  t.same(captureIndex.unfinished(), [`ahead ${RETENTION_BATCH_RUNS - 1}`, ...since]);
});

t.test("by age, what counts is the end, and a long run holds up no other", async (t) => {
  const captureIndex = new CaptureIndex({ keepsRuns: true });
  captureIndex.keep(keptRun(10, { completedAtUs: 1_000 }));
  captureIndex.keep(keptRun(20));
  captureIndex.keep(keptRun(25, { completedAtUs: 41 }));
  captureIndex.keep(keptRun(40));
  t.equal(captureIndex.next(29, null, NOW_US), undefined);
  t.match(captureIndex.next(30, null, NOW_US), { createdAtUs: 20 });
  captureIndex.drop(20);
  t.equal(captureIndex.next(40, null, NOW_US), undefined);
  t.match(captureIndex.next(41, null, NOW_US), { createdAtUs: 25 });
  t.equal(captureIndex.bytes, 300);
});

t.test("a run without captured bytes is none of retention's", async (t) => {
  const captureIndex = new CaptureIndex({ keepsRuns: true });
  captureIndex.keep(keptRun(1, { bytes: 0 }));
  t.equal(captureIndex.runs, 0);
  captureIndex.keep(keptRun(2));
  captureIndex.keep(keptRun(3, { bytes: 7 }));
  t.match(captureIndex, { bytes: 107, runs: 2 });
  t.equal(captureIndex.forgetRuns(), 107);
  captureIndex.keep(keptRun(9));
  t.match(captureIndex, { bytes: 0, runs: 0 });
  t.equal(captureIndex.next(10_000, null, NOW_US), undefined, "what is forgotten is never removed");
  const off = new CaptureIndex({ keepsRuns: false });
  off.keep(keptRun(2));
  t.equal(off.runs, 0, "nothing is kept when retention is off");
});

t.test("a tombstone that is recorded again is one, as if only the last record of it were there", (t) => {
  const captureIndex = new CaptureIndex({ keepsRuns: false });
  for (const [run, timeUs] of [
    ["a", 1],
    ["b", 2],
    ["c", 2],
    ["d", 3],
    ["b", 2],
    ["d", 3],
  ] as const) {
    captureIndex.removed(timeUs, run, timeUs);
  }
  t.same(captureIndex.unfinished(), ["a", "c", "b", "d"]);
  t.end();
});

t.test("the tombstones of the last batch are known, in whatever order they come", async (t) => {
  const captureIndex = new CaptureIndex({ keepsRuns: false });
  const random = createRandom(seed);
  const times = Array.from({ length: 3 * RETENTION_BATCH_RUNS }, (_, at) => ({ timeUs: at + 1, place: random.next() }))
    .sort((a, b) => a.place - b.place)
    .map(({ timeUs }) => timeUs);
  for (const timeUs of times) captureIndex.removed(timeUs, `run ${timeUs}`, timeUs);
  t.same(
    captureIndex.unfinished(),
    times
      .sort((a, b) => a - b)
      .slice(-RETENTION_BATCH_RUNS)
      .map((timeUs) => `run ${timeUs}`),
  );
  captureIndex.finish();
  t.same(captureIndex.unfinished(), []);
});

t.test("against a plain list: random runs, ends out of order, moves, removals from anywhere", async (t) => {
  const random = createRandom(seed);
  let mismatches = 0;
  let queries = 0;
  for (let round = 0; round < 20; round++) {
    const captureIndex = new CaptureIndex({ keepsRuns: true });
    const model = new Map<number, KeptCaptures>();
    let clock = 0;
    for (let step = 0; step < 1_500; step++) {
      clock += random.integer(1, 5);
      const known = [...model.keys()];
      const some = known.length === 0 ? undefined : known[random.integer(0, known.length - 1)];
      if (some === undefined || random.chance(0.6)) {
        const createdAtUs = Math.max(1, clock - random.integer(0, 40));
        if (model.has(createdAtUs)) continue;
        const run = keptRun(createdAtUs, { completedAtUs: clock, bytes: random.integer(1, 50) });
        captureIndex.keep(run);
        model.set(createdAtUs, run);
      } else if (random.chance(0.2)) {
        const moved = {
          ...(model.get(some) as KeptCaptures),
          bytes: random.integer(1, 50),
          location: { segmentBase: clock, offset: 8, length: 9 },
        };
        captureIndex.keep(moved);
        model.set(some, moved);
      } else {
        captureIndex.drop(some);
        model.delete(some);
      }
      const runs = [...model.values()].sort((a, b) => a.createdAtUs - b.createdAtUs);
      const bytes = runs.reduce((sum, run) => sum + run.bytes, 0);
      const endedByUs = random.chance(0.3) ? null : random.integer(0, clock);
      const maximumBytes = random.chance(0.5) ? null : random.integer(0, bytes + 10);
      const next =
        maximumBytes !== null && bytes > maximumBytes
          ? runs[0]
          : runs.find((run) => endedByUs !== null && run.completedAtUs <= endedByUs);
      queries++;
      const found = [captureIndex.next(endedByUs, maximumBytes, NOW_US), captureIndex.bytes, captureIndex.runs];
      const expected = [next, bytes, runs.length];
      if (JSON.stringify(found) !== JSON.stringify(expected)) mismatches++;
    }
  }
  t.equal(mismatches, 0);
  t.comment(`${queries} queries, ${mismatches} mismatches`);
});
