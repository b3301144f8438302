/** Batches that the view takes while it serves: in slices, between which other work has its turn. */
import { setTimeout as pause } from "node:timers/promises";
import t from "tap";
import { createRandom } from "../../../core/random.js";
import { fillReserve, isReserveGivenUp } from "../../../storage/columns/memory-reserve.js";
import { View } from "../../../storage/view/view.js";
import { CellHistory } from "../../helpers/link/cell-history.js";
import { ShortMemory } from "../../helpers/short-memory.js";
import { logOf, PlainLog, wholeOf } from "../../helpers/store/plain-log.js";
import { differences } from "../../helpers/store/view-comparison.js";

const seed = Number(process.env.TEST_SEED ?? 20_250_707);

t.test("a live batch taken in slices gives way within the batch, and ends as one taken in one go", async (t) => {
  const history = new CellHistory(createRandom(seed + 3));
  const records = 400;
  const log = logOf(history, records);
  const whole = wholeOf(log);

  const atOnce = new View({ reader: log });
  atOnce.finishOpening();
  atOnce.applyBatch(whole);
  const view = new View({ reader: log });
  view.finishOpening();
  const seen: number[] = [];
  await view.applyBatchInSlices(
    whole,
    async () => {
      seen.push(view.runCount);
      t.equal(view.appliedSequence, 0, "the batch is not said to be applied before all of it is");
    },
    0,
  );
  t.equal(seen.length, records, "after each record, when a slice has no time");
  t.ok(new Set(seen).size > 10, "between slices the view shows what came so far");
  t.equal(view.appliedSequence, whole.lastSequence);
  t.same(await differences(view, history, createRandom(seed + 4), 100), []);
  t.same(await differences(atOnce, history, createRandom(seed + 4), 100), []);

  let turns = 0;
  const unhurried = new View({ reader: log });
  for (const batch of log.batches) {
    await unhurried.applyBatchInSlices(batch, async () => void turns++, Number.POSITIVE_INFINITY);
  }
  // Nobody knows for how long the thread was kept before.
  t.equal(turns, 1, "at the first record, and not while there is time");
});

t.test("a record that finds no memory is applied whole, and the next one waits until there is some", async (t) => {
  const memory = new ShortMemory(t);
  const history = new CellHistory(createRandom(seed + 7));
  const log = logOf(history, 300);
  const view = new View({ reader: log });
  view.finishOpening();
  fillReserve();
  // The chunks of all columns, one after the other.
  Object.assign(memory, { leastRefusedBytes: 4_096, refusesNext: 1 });
  let waits = 0;
  await view.applyBatchInSlices(
    wholeOf(log),
    async () => {
      if (!isReserveGivenUp()) return;
      waits++;
      fillReserve();
      memory.refusesNext = 1;
    },
    Number.POSITIVE_INFINITY,
  );
  memory.leastRefusedBytes = Number.POSITIVE_INFINITY;
  t.ok(waits >= 3, `${waits} waits`);
  t.equal(memory.refusals, waits);
  t.same(await differences(view, history, createRandom(seed + 8), 100), []);
});

t.test("where other work keeps the thread for long, live batches have more of it", async (t) => {
  const view = new View({ reader: new PlainLog() });
  view.finishOpening();
  let turns = 0;
  const longTurn = () => pause(50).then(() => void turns++);
  await view.applyBatchInSlices(wholeOf(logOf(new CellHistory(createRandom(seed + 6)), 400)), longTurn, 0.05);
  t.ok(turns < 200, `${turns} turns for 400 records; slices that do not grow take one for each record`);
});

t.test("small live batches that follow one another at once give way together as a large one does", async (t) => {
  const history = new CellHistory(createRandom(seed + 5));
  const log = new PlainLog();
  const view = new View({ reader: log });
  view.finishOpening();
  const sliceMs = 20;
  let turns = 0;
  const startMs = performance.now();
  // A batch takes some microseconds, a thousandth of a slice: one alone never fills it.
  while (turns < 4 && performance.now() - startMs < 50 * sliceMs) {
    await view.applyBatchInSlices(log.append(history.next()), async () => void turns++, sliceMs);
  }
  t.equal(turns, 4);
});
