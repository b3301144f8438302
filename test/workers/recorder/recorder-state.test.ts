import t from "tap";
import { isProcessingOpen } from "../../../core/capture/artefact.js";
import { LIMITS } from "../../../core/limits.js";
import { createRandom } from "../../../core/random.js";
import type { RunState } from "../../../core/run/run-state.js";
import { LOG_RECORD_TYPE } from "../../../storage/log/record-format.js";
import { encodeRefusal } from "../../../storage/records/change-record.js";
import { encodeOpeningState } from "../../../workers/recorder/opening-state.js";
import { ProducerTable } from "../../../workers/recorder/producers/producer-table.js";
import { RecorderState } from "../../../workers/recorder/recorder-state.js";
import {
  frameBegin,
  frameLines,
  LINE_BYTES,
  nextId,
  PROGRAM_ID,
  programPut,
} from "../../helpers/link/link-messages.js";
import { listOf } from "../../helpers/list-of.js";
import { instanceOf, NOWHERE, replayed, StateWriter, stateAnswers, timesOf } from "../../helpers/store/state-writer.js";

const SEED = Number(process.env.TEST_SEED ?? 17);

t.test("a replay gives the state that was live, and refuses nothing that it accepted", (t) => {
  t.comment(`TEST_SEED=${SEED}`);
  let records = 0;
  let processed = 0;
  for (let round = 0; round < 20; round++) {
    const writer = new StateWriter();
    writer.fill(createRandom(SEED * 1_000 + round));
    const again = replayed(writer.records, timesOf(writer.records));
    t.strictSame(again.finishReplay(), []);
    t.strictSame(stateAnswers(again, writer), stateAnswers(writer.state, writer));
    t.ok(again.activeRunCount > 0 && again.activeRunCount < again.runCount);
    records += writer.records.length;
    processed += [...again.processedRuns()].length;
    const a = again.producers.get("a");
    t.equal(a?.committed, a?.taken, "what the log has is committed");
  }
  t.comment(`${records} records; ${processed} runs have ended with captures to be processed`);
  t.ok(processed > 5);
  t.end();
});

t.test("an opening state carries producers, refusals, the clock and the last run id, and sets nothing back", (t) => {
  const writer = new StateWriter();
  writer.fill(createRandom(SEED));
  const { body, index } = writer.state.openingState();
  const opening = { type: LOG_RECORD_TYPE.openingState, flags: 0, sequence: 1, timeUs: 1, index, body };
  const fresh = new RecorderState();
  for (const at of [1, 2]) fresh.captures.removed(at, `ahead ${at}`, writer.state.lastTimeUs + at);
  fresh.replay(opening, NOWHERE);
  fresh.captures.removed(3, "since", writer.state.lastTimeUs + 1);
  t.same(fresh.captures.unfinished(), ["ahead 1", "ahead 2", "since"], "also where the clock was set back");
  fresh.finishReplay();
  const { producers, lastRunId, lastTimeUs } = stateAnswers(writer.state, writer);
  t.match(stateAnswers(fresh, writer), { producers, lastRunId, lastTimeUs });
  // A log whose records are all there: the opening state says what they said.
  const middle = Math.floor(writer.records.length / 2);
  const whole = new RecorderState();
  for (const [at, record] of writer.records.entries()) {
    whole.replay({ ...record, flags: 0, sequence: at + 1 }, NOWHERE);
    if (at === middle) whole.replay(opening, NOWHERE);
  }
  whole.finishReplay();
  t.strictSame(stateAnswers(whole, writer).producers, producers);
  t.throws(() => fresh.replay(opening, NOWHERE), /replay is over/);
  t.end();
});

t.test("of a name's instances the newest are known, in whatever order the log says it", (t) => {
  const refusal = { code: "not_found", message: "", params: {} } as const;
  const random = createRandom(SEED);
  const records = Array.from({ length: 4_000 }, (_, at) => {
    const origin = { producer: "p", sequence: at + 1, instance: instanceOf(random.integer(0, 1_500)) };
    return { ...encodeRefusal(origin, refusal), timeUs: at, origin };
  });
  const last = new Map(records.map(({ origin }) => [origin.instance, origin.sequence]));
  const newest = [...last].sort(([, a], [, b]) => a - b).slice(-LIMITS.instancesPerProducer);
  t.ok(last.size > newest.length);
  const instances = (state: RecorderState) =>
    [...(state.producers.get("p")?.instances ?? [])].sort(([, a], [, b]) => a - b);
  t.strictSame(instances(replayed(records, [])), newest);
  for (let round = 0; round < 5; round++) {
    const shuffled = records.map((record) => ({ record, key: random.integer(0, 1 << 30) }));
    shuffled.sort((a, b) => a.key - b.key);
    t.strictSame(
      instances(
        replayed(
          shuffled.map(({ record }) => record),
          [],
        ),
      ),
      newest,
    );
  }
  t.end();
});

t.test("the instances of all names are bounded, and so is the opening state; who has most loses its oldest", (t) => {
  const table = new ProducerTable();
  const take = (producer: string, instance: number, sequence: number) =>
    table.take({ producer, sequence, instance: instanceOf(instance) }, 1, null, true);
  for (let nth = 0; nth < 10; nth++) take("small", nth, nth + 1);
  const names = Array.from({ length: 200 }, (_, nth) => `${nth}`.padStart(LIMITS.producerCharacters, "n"));
  for (let nth = 0; nth < LIMITS.instancesPerProducer; nth++) for (const name of names) take(name, nth, 2 ** 40 + nth);
  const counts = names.map((name) => table.get(name)?.instances.size ?? 0);
  t.equal(
    counts.reduce((sum, count) => sum + count, 10),
    LIMITS.instances,
  );
  t.ok(Math.max(...counts) - Math.min(...counts) <= 1, "all alike");
  t.equal(table.get("small")?.instances.size, 10);
  const newest = instanceOf(LIMITS.instancesPerProducer - 1);
  t.ok(names.every((name) => table.get(name)?.instances.has(newest)));
  const entries = table.entries();
  const bytes = encodeOpeningState({ lastTimeUs: 0, lastRunId: null, producers: entries }).length;
  t.ok(bytes < 10 * 1024 * 1024, `${bytes} bytes`);
  const again = new ProducerTable();
  for (const place of ["empty", "filled"]) {
    again.restore(entries);
    t.ok(JSON.stringify(again.entries()) === JSON.stringify(entries), `restored where it was ${place}`);
  }
  table.forget(names[0] as string);
  for (let nth = 0; nth < LIMITS.instancesPerProducer; nth++) take("new", nth, nth + 1);
  t.ok((table.get("new")?.instances.size ?? 0) >= (counts[0] as number) - 1, "what was forgotten has left its room");
  t.end();
});

t.test("a producer that is forgotten begins anew, in every way that the log is read", (t) => {
  const writer = new StateWriter();
  const opening = () => {
    const { body, index } = writer.state.openingState();
    return { type: LOG_RECORD_TYPE.openingState, index, body };
  };
  for (const name of ["a", "b"])
    for (let nth = 0; nth < 5; nth++) writer.write(name, { type: "run.start", id: nextId() });
  const before = opening();
  writer.forget("a");
  t.equal(writer.state.producers.get("a"), undefined);
  t.equal(writer.state.producers.get("b")?.refusals.size, 5, "others stay as they were");
  const between = opening();
  const cut = writer.records.length;
  writer.write("a", { type: "component.delete", key: "none" });
  t.equal(writer.state.producers.get("a")?.taken, 1);
  t.equal(writer.state.producers.get("a")?.refusals.size, 1);
  const answers = stateAnswers(writer.state, writer).producers;
  const times = timesOf(writer.records);
  t.strictSame(stateAnswers(replayed(writer.records, times), writer).producers, answers, "record by record");
  t.strictSame(
    stateAnswers(replayed([before, ...writer.records.slice(10)], [0, ...times.slice(10)]), writer).producers,
    answers,
    "from the opening state of a segment before it",
  );
  t.strictSame(
    stateAnswers(replayed([between, ...writer.records.slice(cut)], [0, ...times.slice(cut)]), writer).producers,
    answers,
    "and after it",
  );
  t.strictSame(writer.state.producers.unusedSince(times.at(-1) as number), ["b"]);
  t.end();
});

t.test("records that damage took: the run goes on without them, or is closed; no id comes again", (t) => {
  const writer = new StateWriter();
  writer.write("a", programPut());
  const [created, deltas] = [nextId(), nextId()];
  const frameId = nextId();
  writer.write("a", { type: "run.create", id: created, program_id: PROGRAM_ID, serial_number: "S" });
  writer.write("a", { type: "run.start", id: created });
  writer.write("a", frameBegin(frameId, created));
  writer.write("a", frameLines(frameId, 0, 2), 2 * LINE_BYTES);
  writer.write("a", { type: "run.create", id: deltas, program_id: PROGRAM_ID });
  writer.write("a", { type: "run.start", id: deltas });
  const without = (...kinds: string[]) =>
    writer.records.filter(
      ({ changes: [change] }) =>
        change === undefined || !kinds.includes(`${change.kind} ${"runId" in change ? change.runId : ""}`),
    );

  const lostFrame = without(`frame_begun ${created}`);
  const one = replayed(lostFrame, timesOf(lostFrame));
  t.match(one.finishReplay(), listOf({ runId: created, lostChanges: 1, message: /frame/ }));
  t.equal(one.activeRun(created)?.status, "running");

  const lostRun = without(`run_created ${deltas}`);
  const two = replayed(lostRun, timesOf(lostRun));
  t.match(two.finishReplay(), listOf({ runId: deltas, lostChanges: 1 }));
  t.equal(two.activeRun(deltas), undefined);
  t.ok(two.runHasEnded(deltas));
  t.equal(two.lastRunId, deltas);
  t.end();
});

t.test("runs that ended before captures were processed are left as they were; those that go on are processed", (t) => {
  const writer = new StateWriter();
  writer.write("a", programPut());
  const [ended, going] = [nextId(), nextId()];
  for (const id of [ended, going]) {
    const frameId = nextId();
    writer.write("a", { type: "run.create", id, program_id: PROGRAM_ID });
    writer.write("a", { type: "run.start", id });
    writer.write("a", frameBegin(frameId, id));
    writer.write("a", frameLines(frameId, 0, 2), 2 * LINE_BYTES);
    writer.write("a", { type: "frame.end", id: frameId });
  }
  writer.write("a", { type: "run.cancel", id: ended });
  const now = replayed(writer.records, timesOf(writer.records));
  now.finishReplay();
  t.same(
    [...now.processedRuns()].map(({ id }) => id),
    [ended],
  );
  t.ok(now.processedDocumentBytes > 0);
  const before = writer.records.map((record) => ({ ...record, index: record.index.slice() }));
  const index = before.at(-1)?.index as Uint8Array;
  const openByte = index.length - 9;
  t.equal(index[openByte], 0x80, "bit 63 of the bytes, in front of the time of removal");
  index[openByte] = 0;
  const then = replayed(before, timesOf(writer.records));
  then.finishReplay();
  t.same([...then.processedRuns()], []);
  t.ok(isProcessingOpen(then.activeRun(going) as RunState));
  t.end();
});
