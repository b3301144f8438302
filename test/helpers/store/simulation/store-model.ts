import { isDeepStrictEqual } from "node:util";
import { crc32 } from "node:zlib";
import type { CellMessage } from "../../../../core/link/cell-message-schema.js";
import type { Change } from "../../../../core/link/change.js";
import { storedEnd } from "../../../../core/run/run-files.js";
import type { RunState, StoredKind } from "../../../../core/run/run-state.js";
import { capturePath, FILE_OF_KIND } from "../../../../storage/captures/capture-path.js";
import type { LogRecord } from "../../../../storage/log/committed-batch.js";
import { LOG_RECORD_TYPE } from "../../../../storage/log/record-format.js";
import { decodeChanges, decodeRefusal } from "../../../../storage/records/change-record.js";
import { decodeIndex, isChangeRecordType, RECORD_TYPE } from "../../../../storage/records/record-index.js";
import { asModel, CellLinkModel, type ModelRun } from "../../link/cell-link-model.js";
import type { MessageAnswer, SimulatedProducer } from "../../link/simulated-producer.js";

/** A committed record. */
interface Entry {
  digest: number;
  /** A digest of what a hint tells in any case. */
  indexDigest: number;
  isMark: boolean;
}

/**
 * What the store must hold: every record that was ever committed, and beside it what the producers' messages, in the order of these
 * records, add up to by the plain model of the cell link. Committed records never change: whoever shows them again shows the same.
 */
export class StoreModel {
  readonly faults: string[] = [];
  readonly #producers: readonly SimulatedProducer[];
  readonly #model = new CellLinkModel();
  /** By sequence number less one. */
  readonly #entries: Entry[] = [];
  readonly #outcomes = new Map<string, MessageAnswer[]>();
  /** Payloads that were taken, in order: `<run id> <kind>`. */
  readonly #stored = new Map<string, Uint8Array[]>();
  readonly #removed = new Set<string>();

  constructor(producers: readonly SimulatedProducer[]) {
    this.#producers = producers;
    for (const { name } of producers) this.#outcomes.set(name, []);
  }

  get records(): number {
    return this.#entries.length;
  }

  /** The ids of all runs. */
  get runIds(): Iterable<string> {
    return this.#model.runs.keys();
  }

  get removedRuns(): number {
    return this.#removed.size;
  }

  /** A committed record, shown for the first time or again. */
  take(record: LogRecord): void {
    if (record.type === LOG_RECORD_TYPE.openingState || this.compare(record)) return;
    const { sequence } = record;
    if (sequence !== this.#entries.length + 1) {
      this.faults.push(`record ${sequence} comes behind ${this.#entries.length}`);
      return;
    }
    const digests = { digest: digestOf(record), indexDigest: indexDigestOf(record) };
    this.#entries.push({ ...digests, isMark: record.type === LOG_RECORD_TYPE.mark });
    if (!isChangeRecordType(record.type)) return;
    const { origin } = decodeIndex(record.type, record.index);
    if (origin === null) {
      for (const change of decodeChanges(record.type, record.body)) this.#takeOwnChange(change);
      return;
    }
    const refusal = record.type === RECORD_TYPE.refusal ? decodeRefusal(record.body).code : null;
    this.#takeMessage(origin.producer, origin.sequence, refusal);
  }

  /** A failed opening showed marks before they were durable. Nobody built on them: their sequence numbers may be used again. */
  forgetMarksBehind(sequence: number): void {
    while (this.#entries.length > sequence && this.#entries.at(-1)?.isMark) this.#entries.pop();
  }

  /** Whether the record was committed before. If it was, it must be the same. */
  compare(record: LogRecord): boolean {
    if (record.type === LOG_RECORD_TYPE.openingState) return true;
    const known = this.#entries[record.sequence - 1];
    if (known === undefined) return false;
    if (known.digest !== digestOf(record)) this.faults.push(`record ${record.sequence} is another one than it was`);
    return true;
  }

  /** A record that a hint file tells, perhaps without its body. */
  takeHinted(record: LogRecord): void {
    if (record.type === LOG_RECORD_TYPE.openingState) return;
    const known = this.#entries[record.sequence - 1];
    const isSame = known?.indexDigest === indexDigestOf(record);
    if (!isSame || (record.body.length > 0 && known.digest !== digestOf(record)))
      this.faults.push(`a hint tells another record ${record.sequence} than it was`);
  }

  #takeMessage(name: string, number: number, refusal: string | null): void {
    const outcomes = this.#outcomes.get(name) as MessageAnswer[];
    const producer = this.#producers.find((one) => one.name === name) as SimulatedProducer;
    const sent = producer.messages[number - 1];
    if (number !== outcomes.length + 1 || sent === undefined) {
      this.faults.push(`message ${number} of ${name} is recorded behind ${outcomes.length}`);
      return;
    }
    outcomes.push(refusal);
    const reasons = this.#model.take(sent.message, sent.payload.length);
    if (refusal === null ? reasons.length > 0 : !reasons.includes(refusal)) {
      this.faults.push(
        `message ${number} of ${name}: ${refusal ?? "taken"}, the model says ${reasons.join() || "taken"}`,
      );
    }
    if (refusal === null && sent.payload.length > 0) this.#store(sent.message, sent.payload);
  }

  #store(message: CellMessage, payload: Uint8Array): void {
    const isReport = message.type === "file.put" && message.content_type === "application/pdf";
    let runId: string | undefined;
    if (message.type === "frame.lines") runId = this.#model.frames.get(message.id);
    else if ("run_id" in message) runId = message.run_id;
    const key = `${runId} ${isReport ? "reports" : "captures"}`;
    const stored = this.#stored.get(key);
    if (stored === undefined) this.#stored.set(key, [payload]);
    else stored.push(payload);
  }

  /** The service itself ends runs, and removes the captures of ended ones. */
  #takeOwnChange(change: Change): void {
    if (change.kind !== "run_ended") {
      this.faults.push(`the service made a ${change.kind} by itself`);
      return;
    }
    const { run } = change;
    const known = this.#model.runs.get(run.id) as ModelRun;
    if (run.capturesRemovedAtUs !== null) {
      if (/pending|running|finalizing/.test(known.status)) this.faults.push(`captures of active run ${run.id} removed`);
      this.#removed.add(run.id);
    } else if (known.status === "finalizing" && run.status === "completed") {
      this.#model.end(known, "completed", null);
      // What a time-out says of itself.
      known.events = run.eventLog.map(({ eventType }) => eventType);
    } else {
      this.faults.push(`the service ended run ${run.id}, which was ${known.status}, as ${run.status}`);
    }
  }

  /** What a log that was read whole must have shown: its last sequence number is given. Nothing that a producer heard may be missing. */
  judgeAnswers(): void {
    for (const { name, answers, faults } of this.#producers) {
      const outcomes = this.#outcomes.get(name) as MessageAnswer[];
      for (const [at, answer] of answers.entries()) {
        if (at >= outcomes.length)
          this.faults.push(`message ${at + 1} of ${name} was answered (${answer}) and is lost`);
        else if (outcomes[at] !== answer)
          this.faults.push(`message ${at + 1} of ${name}: ${answer}, but ${outcomes[at]}`);
      }
      this.faults.push(...faults.splice(0));
    }
  }

  /** Capture files that retention has removed, or still has to. */
  removedPaths(): string[] {
    return [...this.#removed].map((id) => capturePath(id, "capture"));
  }

  /** How many bytes at the start of each capture file records name; of those that retention has removed none. */
  storedLengths(): Map<string, number> {
    const lengths = new Map<string, number>();
    for (const [key, payloads] of this.#stored) {
      const [runId, kind] = key.split(" ") as [string, StoredKind];
      if (kind === "captures" && this.#removed.has(runId)) continue;
      const length = payloads.reduce((sum, payload) => sum + payload.length, 0);
      lengths.set(capturePath(runId, FILE_OF_KIND[kind]), length);
    }
    return lengths;
  }

  /** Compares those runs that could be read back with the model. */
  judgeShown(runs: ReadonlyMap<string, RunState | undefined>): void {
    for (const [id, run] of runs) if (run !== undefined) this.#judgeRun(id, run);
  }

  #judgeRun(id: string, run: RunState): void {
    const expected = this.#model.runs.get(id);
    if (!isDeepStrictEqual(asModel(run), expected)) {
      this.faults.push(`run ${id} is ${JSON.stringify(asModel(run))}, not ${JSON.stringify(expected)}`);
    }
    if ((run.capturesRemovedAtUs !== null) !== this.#removed.has(id)) this.faults.push(`tombstone of ${id}`);
  }

  /** Compares runs as they were read back, and their stored bytes, with the model. */
  judgeRuns(runs: ReadonlyMap<string, RunState | undefined>, bytesOf: (path: string) => Uint8Array | undefined): void {
    for (const id of this.#model.runs.keys()) {
      const run = runs.get(id);
      if (run === undefined) {
        this.faults.push(`run ${id} is not there`);
        continue;
      }
      this.#judgeRun(id, run);
      for (const kind of ["captures", "reports"] as const) this.#judgeStored(run, kind, bytesOf);
    }
  }

  #judgeStored(run: RunState, kind: StoredKind, bytesOf: (path: string) => Uint8Array | undefined): void {
    if (kind === "captures" && this.#removed.has(run.id)) return;
    const expected = Buffer.concat(this.#stored.get(`${run.id} ${kind}`) ?? []);
    const end = storedEnd(run, kind);
    if (end !== expected.length)
      this.faults.push(`${kind} of ${run.id}: ${end} bytes named, ${expected.length} stored`);
    if (expected.length === 0) return;
    const found = bytesOf(capturePath(run.id, FILE_OF_KIND[kind]))?.subarray(0, expected.length);
    if (found === undefined || !expected.equals(found))
      this.faults.push(`${kind} of ${run.id}: other bytes than were sent`);
  }
}

function digestOf(record: LogRecord): number {
  return crc32(record.body, indexDigestOf(record));
}

function indexDigestOf({ type, timeUs, index }: LogRecord): number {
  return crc32(index, (type + timeUs) >>> 0);
}
