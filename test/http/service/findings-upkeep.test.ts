import { setImmediate as eventLoopTurn } from "node:timers/promises";
import t from "tap";
import { FindingsUpkeep } from "../../../http/service/findings-upkeep.js";

/** An upkeep with so many missing files, and the tasks that it asked for. */
function upkeepOf(missing: number) {
  const seen = { missing, tasks: 0, atOnce: 0, failing: false };
  let running = 0;
  const upkeep = new FindingsUpkeep({
    dataDirectory: "store",
    make: async (task) => {
      t.same(task, { name: "makeFindings", input: { dataDirectory: "store", newestFirst: false } });
      seen.tasks++;
      seen.atOnce = Math.max(seen.atOnce, ++running);
      await eventLoopTurn();
      running--;
      if (seen.failing) return { error: { code: "closed", message: "the service stops" } };
      const hasMade = seen.missing > 0;
      if (hasMade) seen.missing--;
      return { value: { hasMade } };
    },
  });
  return { upkeep, seen };
}

const settled = async () => {
  for (let turn = 0; turn < 40; turn++) await eventLoopTurn();
};

t.test("missing files are made one at a time, at a start and after each sealed segment", async (t) => {
  const { upkeep, seen } = upkeepOf(3);
  upkeep.sealedSegments(0);
  await settled();
  t.equal(seen.tasks, 0, "without a sealed segment there is nothing to make");
  upkeep.sealedSegments(3);
  upkeep.sealedSegments(3);
  await settled();
  t.match(seen, { missing: 0, tasks: 4, atOnce: 1 }, "the last one finds nothing");
  seen.missing = 1;
  upkeep.sealedSegments(3);
  await settled();
  t.equal(seen.tasks, 4, "nothing was sealed");
  upkeep.sealedSegments(4);
  await settled();
  t.match(seen, { missing: 0, tasks: 6 });
});

t.test("a segment that is sealed meanwhile has its turn; a failure waits for the next one", async (t) => {
  const { upkeep, seen } = upkeepOf(1);
  upkeep.sealedSegments(1);
  seen.missing++;
  upkeep.sealedSegments(2);
  await settled();
  t.match(seen, { missing: 0, atOnce: 1 });
  seen.failing = true;
  seen.missing = 1;
  upkeep.sealedSegments(3);
  await settled();
  const { tasks } = seen;
  await settled();
  t.equal(seen.tasks, tasks, "it is not tried again and again");
  seen.failing = false;
  upkeep.sealedSegments(4);
  await settled();
  t.equal(seen.missing, 0);
});
