import t from "tap";
import { createRandom } from "../../../core/random.js";
import type { RecordPlacesData } from "../../../workers/recorder/record-places.js";
import { CompactingStore } from "../../helpers/compaction/compacting-store.js";
import { nextRecord, shadowOf, stateAnswers } from "../../helpers/compaction/compaction-history.js";
import { CellHistory, type HistoryRecord } from "../../helpers/link/cell-history.js";
import { createDisk } from "../../helpers/store/log-harness.js";
import { differences } from "../../helpers/store/view-comparison.js";
import { sized } from "../../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 20_261_121);
const ROUNDS = sized(1, 60);
const SEGMENT_BYTES = 24 * 1024;

/** What is not dead, in an order of its own. */
function ownersOf({ garbage }: RecordPlacesData) {
  return [...garbage.live].sort(([left], [right]) => (left < right ? -1 : 1));
}

t.test(`compaction at any moment changes no answer, live and after opening anew, seed ${SEED}`, async (t) => {
  let dropped = 0;
  let compactions = 0;
  let recordsInAll = 0;
  let [before, after] = [0, 0];
  for (let round = 0; round < ROUNDS; round++) {
    const random = createRandom(SEED * 1_000 + round);
    const history = new CellHistory(random);
    const records: HistoryRecord[] = [];
    const disk = await createDisk();
    let store = await CompactingStore.open(disk, SEGMENT_BYTES);
    const write = async (groups: number): Promise<void> => {
      for (let group = 0; group < groups; group++) {
        for (let count = random.integer(1, 25); count > 0; count--) {
          const record = nextRecord(history, random);
          records.push(record);
          store.append(record);
        }
        await store.log.whenCommitted(store.log.nextSequence - 1);
      }
    };
    const look = async (what: string): Promise<void> => {
      t.same(await differences(store.view, history, random, 12), [], what) || t.bailout();
    };
    for (let opening = 0; opening < 4; opening++) {
      for (let phase = 0; phase < 3; phase++) {
        await write(25);
        await look(`round ${round}, before`);
        // The front takes moves in while records come and clients read.
        store.giveWay = async () => {
          if (random.chance(0.02)) await look(`round ${round}, within the moves`);
        };
        const compacting = store.compact();
        await write(6);
        await look(`round ${round}, while it compacts`);
        await compacting;
        await look(`round ${round}, after`);
        t.equal(store.view.skippedRecords, 0);
      }
      const state = stateAnswers(store.state, history);
      t.same(state, stateAnswers(shadowOf(records), history), "no record was forgotten");
      const places = store.state.places.export();
      await store.close();
      compactions += store.compacted.length;
      for (const { fields } of store.compacted) {
        dropped += fields.records_dropped as number;
        before += fields.bytes_before as number;
        after += fields.bytes_after as number;
      }
      t.same(
        store.lines.filter(({ level }) => level !== "info"),
        [],
      );
      store = await CompactingStore.open(disk, SEGMENT_BYTES);
      t.match(store.log.recovery, { findings: { length: 0 }, lostRecords: 0, corruptionCount: 0 });
      await look(`round ${round}, opened anew`);
      t.equal(store.view.skippedRecords, 0);
      t.same(stateAnswers(store.state, history), state, "the state is what it was live") || t.bailout();
      t.same(ownersOf(store.state.places.export()), ownersOf(places), "and so is what it knows of places");
    }
    await store.close();
    recordsInAll += records.length;
  }
  t.ok(compactions > 5 * ROUNDS && dropped > 0);
  t.comment(
    `${ROUNDS} histories, ${recordsInAll} records, ${compactions} compactions: ${dropped} records dropped, ` +
      `${before} bytes became ${after}`,
  );
});
