import t, { type Test } from "tap";
import type { ServiceLog } from "../../../http/log/service-log.js";
import { recorderCallbacks } from "../../../http/service/recorder-callbacks.js";
import { SeenShortage } from "../../../http/service/seen-shortage.js";
import type { ServiceReaders } from "../../../http/service/service-readers.js";
import { allocated, fillReserve, isReserveGivenUp } from "../../../storage/columns/memory-reserve.js";
import type { CommittedBatch } from "../../../storage/log/committed-batch.js";
import { outOfMemory, ShortMemory } from "../../helpers/short-memory.js";

/** A view that has found no memory. It asks for its next turn, and no more. */
function starved(t: Test) {
  const memory = new ShortMemory(t);
  fillReserve();
  let isFirst = true;
  allocated(() => {
    if (isFirst) {
      isFirst = false;
      throw outOfMemory();
    }
  });
  memory.leastRefusedBytes = 1;
  const shortage = new SeenShortage(() => Date.now() * 1_000);
  const view = { applyBatchInSlices: (_: unknown, giveWay: () => Promise<void>) => giveWay() };
  const readers = { isServing: true, view, health: { shortage } };
  const callbacks = recorderCallbacks(readers as unknown as ServiceReaders, {} as ServiceLog);
  const refused = async (count: number): Promise<void> => {
    while (memory.refusals < count) await new Promise((resolve) => setTimeout(resolve, 5));
  };
  return { memory, shortage, readers, refused, apply: () => callbacks.onBatch({} as CommittedBatch) as Promise<void> };
}

t.test("without memory the view waits for it, and health says so; nothing has failed", async (t) => {
  const { memory, shortage, refused, apply } = starved(t);
  let isApplied = false;
  const applied = apply().then(() => {
    isApplied = true;
  });
  await refused(2);
  t.match(shortage.detail, /refused, or late: the machine has no memory left \(Array buffer allocation failed\)/);
  t.equal(isApplied, false);
  memory.leastRefusedBytes = Number.POSITIVE_INFINITY;
  await applied;
  t.equal(isReserveGivenUp(), false);
});

t.test("a stop does not wait for memory", async (t) => {
  const { readers, refused, apply } = starved(t);
  const applied = apply();
  await refused(1);
  readers.isServing = false;
  await applied;
  t.equal(isReserveGivenUp(), true);
});
