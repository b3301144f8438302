import type { Change } from "../../../core/link/change.js";
import { decideMessage } from "../../../core/link/decide-message.js";
import { parseCellMessage } from "../../../core/link/parse-cell-message.js";
import { RefusedError } from "../../../core/link/refusal.js";
import type { Random } from "../../../core/random.js";
import { foldRun } from "../../../core/run/run-fold.js";
import type { LogRecord } from "../../../storage/log/committed-batch.js";
import { type EncodedRecord, encodeChanges, encodeRefusal } from "../../../storage/records/change-record.js";
import { RecorderState } from "../../../workers/recorder/recorder-state.js";
import { frameBegin, frameLines, LINE_BYTES, nextId, PROGRAM_ID, programPut } from "../link/link-messages.js";

export const NOWHERE = { segmentBase: 1, offset: 64, length: 64 };

export interface Written extends EncodedRecord {
  timeUs: number;
  changes: Change[];
}

/** A state that is written to as the recorder does it, and the records of its log. */
export class StateWriter {
  readonly state = emptyState();
  readonly records: Written[] = [];
  readonly runIds: string[] = [];
  readonly frameIds: string[] = [];
  /** What was written, in order. */
  readonly messages: Parameters<StateWriter["write"]>[] = [];
  #timeUs = 1_000;
  #sequences = new Map<string, number>();
  /** From which queue each producer sends now. */
  #instances = new Map<string, string>();

  write(producer: string, body: object, payloadBytes = 0, instance = this.#instances.get(producer)): void {
    this.messages.push([producer, body, payloadBytes, instance]);
    const sequence = (this.#sequences.get(producer) ?? 0) + 1;
    this.#sequences.set(producer, sequence);
    const origin = { producer, sequence, ...(instance !== undefined && { instance }) };
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

  /** The producer is forgotten: its sequence numbers begin anew. */
  forget(name: string): void {
    const changes: Change[] = [{ kind: "producer_forgotten", name }];
    const timeUs = ++this.#timeUs;
    this.records.push({ ...encodeChanges(null, changes, undefined), timeUs, changes });
    this.state.apply(null, changes, timeUs);
    this.#sequences.delete(name);
  }

  /** Some hundred messages of three producers about runs that overlap. */
  fill(random: Random): void {
    const producers = ["a", "b", "c"];
    this.write("a", programPut());
    for (let i = 0; i < 400; i++) {
      const producer = producers[random.integer(0, 2)] as string;
      if (random.chance(0.2)) this.#instances.set(producer, instanceOf(random.integer(0, 24)));
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
          if (random.chance(0.5)) this.write(producer, { type: "frame.end", id: this.frameIds.at(-1) ?? runId });
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

export function instanceOf(nth: number): string {
  return `00000000-0000-4000-8000-${String(nth).padStart(12, "0")}`;
}

function emptyState(): RecorderState {
  const state = new RecorderState();
  state.finishReplay();
  return state;
}

/** Everything that a state says about what was written. */
export function stateAnswers(state: RecorderState, written: StateWriter) {
  const producers = ["a", "b", "c"].map((name) => {
    const producer = state.producers.get(name);
    return [
      name,
      producer?.taken,
      [...(producer?.instances ?? [])].sort(),
      [...(producer?.refusals ?? [])].map(([sequence, stored]) => [sequence, stored.refusal]),
    ];
  });
  return {
    cell: state.cell(),
    counts: [state.componentCount, state.programCount, state.activeRunCount, state.runCount],
    lastRunId: state.lastRunId,
    lastTimeUs: state.lastTimeUs,
    documentBytes: [state.activeDocumentBytes, state.processedDocumentBytes],
    processed: [...state.processedRuns()].sort((a, b) => (a.id < b.id ? -1 : 1)),
    runs: written.runIds.map((id) => [id, state.runHasEnded(id), state.activeRun(id)]),
    frames: written.frameIds.map((id) => [id, state.runOfFrame(id)]),
    revisions: Array.from({ length: 10 }, (_, at) => state.nextRevision(`SN-${at}`)),
    lastWriters: [...state.lastWriters()].sort(),
    producers,
  };
}

export function replayed(
  records: readonly Pick<LogRecord, "type" | "index" | "body">[],
  times: readonly number[],
): RecorderState {
  const state = new RecorderState();
  for (const [at, record] of records.entries()) {
    state.replay({ ...record, flags: 0, sequence: at + 1, timeUs: times[at] ?? 0 }, NOWHERE);
  }
  return state;
}

export function timesOf(records: readonly Written[]): number[] {
  return records.map((record) => record.timeUs);
}
