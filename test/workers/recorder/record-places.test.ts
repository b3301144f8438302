import t from "tap";
import { LIMITS } from "../../../core/limits.js";
import { createRandom } from "../../../core/random.js";
import { SegmentGarbage } from "../../../storage/compaction/segment-garbage.js";
import { encodeChanges, encodeRefusal, saysOnlyTheRun } from "../../../storage/records/change-record.js";
import { RECORD_TYPE } from "../../../storage/records/record-index.js";
import { CompactingStore } from "../../helpers/compaction/compacting-store.js";
import { CellHistory } from "../../helpers/link/cell-history.js";
import { createDisk } from "../../helpers/store/log-harness.js";

t.test("bytes are dead once their owner is released, by segment", async (t) => {
  const garbage = new SegmentGarbage();
  garbage.add("run", 1, 100);
  garbage.add("run", 1, 50);
  garbage.add("run", 40, 7);
  garbage.add("row", 40, 9);
  t.equal(garbage.deadBytes(1), 0);
  t.ok(garbage.endsIn("run", 40));
  t.notOk(garbage.endsIn("run", 1));
  const copy = new SegmentGarbage();
  copy.restore(structuredClone(garbage.export()));
  for (const one of [garbage, copy]) {
    one.release("run");
    one.release("nobody");
    t.same([one.deadBytes(1), one.deadBytes(40)], [150, 7]);
    one.remove(1, 150);
    one.bury(40, 1);
    t.same(one.export(), { dead: [[40, 8]], live: [["row", [40, 9]]] });
  }
});

t.test("a record that says more than the run's end will is not needless", async (t) => {
  const runId = "01900000-0000-7000-8000-000000000001";
  const { body } = encodeChanges(null, [{ kind: "run_started", runId }], { status: "running" } as never);
  t.ok(saysOnlyTheRun(RECORD_TYPE.runDelta, body));
  // A map of two entries: something stands beside the changes.
  const more = Buffer.concat([Buffer.from([0x82]), body.subarray(1), Buffer.from([0xa1, 0x61, 0x01])]);
  t.notOk(saysOnlyTheRun(RECORD_TYPE.runDelta, more));
  const history = new CellHistory(createRandom(3));
  let record = history.next();
  while (record.type !== RECORD_TYPE.runEnded) record = history.next();
  t.ok(saysOnlyTheRun(RECORD_TYPE.runEnded, record.body));
  const changes = Buffer.concat([Buffer.from([0x82]), record.body.subarray(1), Buffer.from([0xa1, 0x61, 0x01])]);
  t.notOk(saysOnlyTheRun(RECORD_TYPE.runEnded, changes));
});

t.test("refusals that are stored survive, those that had to make room go", async (t) => {
  const disk = await createDisk();
  let store = await CompactingStore.open(disk, 32 * 1024);
  const count = LIMITS.refusalsPerProducer + 600;
  for (let sequence = 1; sequence <= count; sequence++) {
    const refusal = { code: "not_found", message: `no run ${sequence}`, params: {} } as const;
    store.append({ ...encodeRefusal({ producer: "wild", sequence }, refusal), timeUs: sequence });
    if (sequence % 50 === 0) await store.log.whenCommitted(store.log.nextSequence - 1);
  }
  await store.log.whenCommitted(store.log.nextSequence - 1);
  await store.compact();
  const dropped = store.compacted.reduce((sum, { fields }) => sum + (fields.records_dropped as number), 0);
  t.ok(dropped > 300 && dropped <= 600, `${dropped} dropped`);
  const stored = (one: CompactingStore) => {
    const producer = one.state.producers.get("wild");
    return [producer?.taken, [...(producer?.refusals ?? [])].map(([n, { refusal }]) => [n, refusal.message])];
  };
  const before = stored(store);
  await store.close();
  store = await CompactingStore.open(disk, 32 * 1024);
  t.same(stored(store), before);
  t.equal(store.state.producers.get("wild")?.refusals.size, LIMITS.refusalsPerProducer);
  await store.close();
});
