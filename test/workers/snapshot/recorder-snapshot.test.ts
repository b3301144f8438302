import t from "tap";
import { createRandom } from "../../../core/random.js";
import { CaptureIndex } from "../../../storage/captures/capture-index.js";
import { MemorySnapshot } from "../../../storage/snapshot/memory-snapshot.js";
import { SnapshotError } from "../../../storage/snapshot/snapshot-format.js";
import { RecorderState } from "../../../workers/recorder/recorder-state.js";
import { sectionDifferences } from "../../helpers/snapshot/section-differences.js";
import { NOWHERE, replayed, StateWriter, stateAnswers, timesOf } from "../../helpers/store/state-writer.js";
import { sized } from "../../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 20_262);

async function columnsOf(state: RecorderState): Promise<MemorySnapshot> {
  const columns = new MemorySnapshot();
  await state.writeSnapshot(columns);
  return columns;
}

async function restored(columns: MemorySnapshot): Promise<RecorderState> {
  const state = new RecorderState();
  await state.loadSnapshot(columns);
  return state;
}

t.test(
  `a state taken out and put in again decides everything as the one of the whole log, TEST_SEED=${SEED}`,
  async (t) => {
    let records = 0;
    let decisions = 0;
    let refusals = 0;
    for (let round = 0; round < sized(3, 100); round++) {
      const random = createRandom(SEED * 1_000 + round);
      const writer = new StateWriter();
      writer.fill(random);
      const all = writer.records.map((record, at) => ({ ...record, flags: 0, sequence: at + 1 }));
      const cut = random.integer(0, all.length);
      const state = await restored(await columnsOf(replayed(writer.records.slice(0, cut), timesOf(writer.records))));
      for (const record of all.slice(cut)) state.replay(record, NOWHERE);
      const whole = replayed(writer.records, timesOf(writer.records));
      t.same(sectionDifferences(await columnsOf(state), await columnsOf(whole)), [], `cut at ${cut} of ${all.length}`);
      t.same(state.finishReplay(), []);
      whole.finishReplay();
      t.same(stateAnswers(state, writer), stateAnswers(whole, writer));

      // The same messages from here on, resent ones among them: producers' numbers and refusals are in the answers above.
      const other = writer.goingOnWith(state);
      const before = writer.messages.length;
      writer.fill(random);
      for (const message of writer.messages.slice(before)) other.write(...message);
      t.same(other.records, writer.records.slice(all.length), "the same records, byte for byte");
      t.same(stateAnswers(state, writer), stateAnswers(writer.state, writer));
      records += all.length;
      decisions += other.records.length;
      refusals += other.records.filter(({ changes }) => changes.length === 0).length;
    }
    t.comment(`${records} records, ${decisions} decisions behind them, ${refusals} of them refusals`);
  },
);

t.test("captures: rows and the runs removed last; without retention the rows are left out", async (t) => {
  const captureIndex = new CaptureIndex({ keepsRuns: true });
  for (const [nth, bytes] of [100, null, 300].entries()) {
    captureIndex.keep({
      createdAtUs: 10 + nth,
      completedAtUs: 20 + nth,
      bytes,
      location: { ...NOWHERE, offset: 64 * nth },
    });
  }
  captureIndex.keep({ createdAtUs: 5, completedAtUs: 6, bytes: 7, location: NOWHERE });
  captureIndex.removed(5, "a", 30);
  const columns = await columnsOf(new RecorderState(captureIndex));

  const keeping = new CaptureIndex({ keepsRuns: true });
  await new RecorderState(keeping).loadSnapshot(columns);
  t.same([keeping.runs, keeping.bytes, keeping.oldestCreatedAtUs], [3, 400, 10]);
  t.same(keeping.unfinished(), ["a"]);
  t.match(keeping.nextUnknown(0), { createdAtUs: 11, bytes: null, location: { offset: 64 } });
  t.match(keeping.next(20, null, Number.MAX_SAFE_INTEGER), { createdAtUs: 10, completedAtUs: 20, bytes: 100 });
  // It goes on: rows are added and dropped.
  keeping.keep({ createdAtUs: 50, completedAtUs: 60, bytes: 1, location: NOWHERE });
  keeping.drop(10);
  t.same([keeping.runs, keeping.bytes], [3, 301]);

  const forgetting = new CaptureIndex({ keepsRuns: false });
  await new RecorderState(forgetting).loadSnapshot(columns);
  t.same([forgetting.runs, forgetting.unfinished()], [0, ["a"]]);
});

t.test("columns of different lengths are refused; a state that is in use has no raw records to write", async (t) => {
  const writer = new StateWriter();
  writer.fill(createRandom(1));
  const columns = await columnsOf(replayed(writer.records, timesOf(writer.records)));
  for (const section of ["recorderRunStatuses", "recorderFrameRuns", "recorderRevisions"] as const) {
    const bytes = columns.sections.get(section) as Uint8Array;
    columns.sections.set(section, bytes.subarray(4));
    await t.rejects(restored(columns), SnapshotError, section);
    columns.sections.set(section, bytes);
  }
  await t.rejects(columnsOf(writer.state), /replay is over/);
});
