import t from "tap";
import type { Change } from "../../../core/change.js";
import { decideMessage } from "../../../core/decide-message.js";
import { parseCellMessage } from "../../../core/parse-cell-message.js";
import { createRandom, type Random } from "../../../core/random.js";
import { RefusedError } from "../../../core/refusal.js";
import { foldRun } from "../../../core/run-fold.js";
import { type EncodedRecord, encodeChanges, encodeRefusal } from "../../../storage/change-record.js";
import { LOG_RECORD_TYPE } from "../../../storage/record-format.js";
import { RecorderState } from "../../../workers/recorder/recorder-state.js";
import { frameBegin, frameLines, LINE_BYTES, nextId, PROGRAM_ID, programPut } from "../../helpers/link-messages.js";

const NOWHERE = { segmentBase: 1, offset: 64, length: 64 };
const SEED = Number(process.env.TEST_SEED ?? 17);

interface Written extends EncodedRecord {
  timeUs: number;
  changes: Change[];
}

/** A state that is written to as the recorder does it, and the records of its log. */
class Writer {
  readonly state = new RecorderState();
  readonly records: Written[] = [];
  readonly runIds: string[] = [];
  readonly frameIds: string[] = [];
  #timeUs = 1_000;
  #sequences = new Map<string, number>();

  constructor() {
    this.state.finishReplay();
  }

  write(producer: string, body: object, payloadBytes = 0): void {
    const sequence = (this.#sequences.get(producer) ?? 0) + 1;
    this.#sequences.set(producer, sequence);
    const origin = { producer, sequence };
    const timeUs = ++this.#timeUs;
    const store = () => ({ offset: 0, lengthBytes: payloadBytes, crc32: 0 });
    const payload = { lengthBytes: payloadBytes, crc32: () => 0, store };
    try {
      const changes = decideMessage(this.state, parseCellMessage(body), payload, timeUs);
      const [first] = changes as [Change];
      let run = "runId" in first ? this.state.activeRun(first.runId) : undefined;
      if (first.kind === "run_created") run = foldRun(undefined, first, timeUs);
      this.records.push({ ...encodeChanges(origin, changes, run), timeUs, changes });
      this.state.apply(origin, changes, timeUs);
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      this.records.push({ ...encodeRefusal(origin, error.refusal), timeUs, changes: [] });
      this.state.applyRefusal(origin, error.refusal, timeUs);
    }
  }

  /** Some hundred messages of three producers about runs that overlap. */
  fill(random: Random): void {
    const producers = ["a", "b", "c"];
    this.write("a", programPut());
    for (let i = 0; i < 400; i++) {
      const producer = producers[random.integer(0, 2)] as string;
      const runId = this.runIds.at(-random.integer(1, Math.min(4, this.runIds.length || 1))) ?? nextId();
      switch (random.integer(0, 8)) {
        case 0: {
          const id = nextId();
          this.runIds.push(id);
          const serial = random.chance(0.8) ? { serial_number: `SN-${random.integer(0, 9)}` } : {};
          this.write(producer, { type: "run.create", id, program_id: PROGRAM_ID, ...serial });
          break;
        }
        case 1:
        case 2:
          this.write(producer, { type: "run.start", id: runId });
          break;
        case 3: {
          const id = nextId();
          this.frameIds.push(id);
          this.write(producer, frameBegin(id, runId));
          break;
        }
        case 4:
          this.write(producer, frameLines(this.frameIds.at(-1) ?? runId, 0, 2), 2 * LINE_BYTES);
          break;
        case 5:
          this.write(producer, { type: "component.put", key: `k${i % 7}`, status: "healthy" });
          break;
        case 6:
          this.write(producer, { type: "event.add", run_id: runId, event_type: "e", data: { i } });
          break;
        case 7:
          this.write(producer, { type: "program.put", program: { ...programPut().program, id: nextId() } });
          break;
        default:
          if (random.chance(0.5)) this.write(producer, { type: "run.cancel", id: runId });
          else this.write(producer, { type: "cell.put", unit_system: random.chance(0.5) ? "metric" : "imperial" });
      }
    }
  }
}

/** Everything that a state says about what was written. */
function answers(state: RecorderState, written: Writer) {
  const producers = ["a", "b", "c"].map((name) => {
    const producer = state.producers.get(name);
    return [
      name,
      producer?.taken,
      [...(producer?.refusals ?? [])].map(([sequence, stored]) => [sequence, stored.refusal]),
    ];
  });
  return {
    cell: state.cell(),
    counts: [state.componentCount, state.programCount, state.activeRunCount, state.runCount],
    lastRunId: state.lastRunId,
    lastTimeUs: state.lastTimeUs,
    documentBytes: state.activeDocumentBytes,
    runs: written.runIds.map((id) => [id, state.runHasEnded(id), state.activeRun(id)]),
    frames: written.frameIds.map((id) => [id, state.runOfFrame(id)]),
    revisions: Array.from({ length: 10 }, (_, at) => state.nextRevision(`SN-${at}`)),
    lastWriters: [...state.lastWriters()].sort(),
    producers,
  };
}

function replay(records: readonly EncodedRecord[], times: readonly number[]): RecorderState {
  const state = new RecorderState();
  for (const [at, record] of records.entries()) {
    state.replay({ ...record, flags: 0, sequence: at + 1, timeUs: times[at] ?? 0 }, NOWHERE);
  }
  return state;
}

const times = (records: readonly Written[]) => records.map((record) => record.timeUs);

t.test("a replay gives the state that was live, and refuses nothing that it accepted", (t) => {
  t.comment(`TEST_SEED=${SEED}`);
  let records = 0;
  for (let round = 0; round < 20; round++) {
    const writer = new Writer();
    writer.fill(createRandom(SEED * 1_000 + round));
    const again = replay(writer.records, times(writer.records));
    t.strictSame(again.finishReplay(), []);
    t.strictSame(answers(again, writer), answers(writer.state, writer));
    t.ok(again.activeRunCount > 0 && again.activeRunCount < again.runCount);
    records += writer.records.length;
    const a = again.producers.get("a");
    t.equal(a?.committed, a?.taken, "what the log has is committed");
  }
  t.comment(`${records} records`);
  t.end();
});

t.test("an opening state carries producers, refusals, the clock and the last run id, and sets nothing back", (t) => {
  const writer = new Writer();
  writer.fill(createRandom(SEED));
  const { body, index } = writer.state.openingState();
  const opening = { type: LOG_RECORD_TYPE.openingState, flags: 0, sequence: 1, timeUs: 1, index, body };
  const fresh = new RecorderState();
  fresh.replay(opening, NOWHERE);
  fresh.finishReplay();
  const { producers, lastRunId, lastTimeUs } = answers(writer.state, writer);
  t.match(answers(fresh, writer), { producers, lastRunId, lastTimeUs });
  // A log whose records are all there: the opening state says what they said.
  const middle = Math.floor(writer.records.length / 2);
  const whole = new RecorderState();
  for (const [at, record] of writer.records.entries()) {
    whole.replay({ ...record, flags: 0, sequence: at + 1 }, NOWHERE);
    if (at === middle) whole.replay(opening, NOWHERE);
  }
  whole.finishReplay();
  t.strictSame(answers(whole, writer).producers, producers);
  t.throws(() => fresh.replay(opening, NOWHERE), /replay is over/);
  t.end();
});

t.test("records that damage took: the run goes on without them, or is closed; no id comes again", (t) => {
  const writer = new Writer();
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
  const one = replay(lostFrame, times(lostFrame));
  t.match(one.finishReplay(), [{ runId: created, lostChanges: 1, message: /frame/ }]);
  t.equal(one.activeRun(created)?.status, "running");

  const lostRun = without(`run_created ${deltas}`);
  const two = replay(lostRun, times(lostRun));
  t.match(two.finishReplay(), [{ runId: deltas, lostChanges: 1 }]);
  t.equal(two.activeRun(deltas), undefined);
  t.ok(two.runHasEnded(deltas));
  t.equal(two.lastRunId, deltas);
  t.end();
});
