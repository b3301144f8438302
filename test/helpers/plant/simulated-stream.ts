import { crc32 } from "node:zlib";
import { createRandom, type Random } from "../../../core/random.js";
import type { RunState } from "../../../core/run/run-state.js";
import type { RecordInput } from "../../../storage/log/log-options.js";
import { RECORD_HEADER_BYTES, recordLength, writeRecordHeader } from "../../../storage/log/record-format.js";
import { decodeIndex, type RecordType, runOfIndex } from "../../../storage/records/record-index.js";
import { encodeFields, logSubject } from "../../../workers/plant/log-message.js";
import type { LogMessage } from "../../../workers/plant/plant-client.js";
import { CellHistory, type HistoryRecord } from "../link/cell-history.js";
import { nextRecord } from "../store/hinted-store.js";

const FIRST_TIME_US = 1_800_000_000_000_000;

interface SimulatedStore {
  cell: string;
  storeId: string;
  history: CellHistory;
  nextSequence: number;
  /** What its log has: each record with its sequence number. A mark has no model. */
  log: LogEntry[];
}

interface LogEntry {
  sequence: number;
  bytes: Uint8Array;
  record: HistoryRecord | null;
}

/** A run as a hub must show it. */
export interface ShownRun {
  run: RunState;
  cell: string;
  updatedAtUs: number;
}

/** The log stream of a plant, made of random histories, and beside it a plain model of what a hub must show. */
export class SimulatedStream {
  readonly messages: LogMessage[] = [];
  /** By run id. */
  readonly #marks = new Map<string, { cell: string; updatedAtUs: number }>();
  readonly #random: Random;
  readonly #stores: SimulatedStore[];
  #timeUs = FIRST_TIME_US;
  #markUs = 0;
  /** By subject: the last record that was shipped. */
  readonly #shipped = new Map<string, number>();
  counts = { records: 0, parts: 0, faults: 0, repeated: 0, renames: 0 };

  /** @param cells names; one that comes twice is a cell whose disk was replaced */
  constructor(seed: number, cells: readonly string[]) {
    this.#random = createRandom(seed);
    this.#stores = cells.map((cell, at) => ({
      cell,
      storeId: `${String(at).repeat(8)}-1111-4111-8111-111111111111`,
      history: new CellHistory(createRandom(seed + 100 + at)),
      nextSequence: 1,
      log: [],
    }));
  }

  get runs(): ShownRun[] {
    const runs = this.#stores.flatMap(({ history }) => [...history.runs.values()]);
    return runs.map((run) => ({ run, ...(this.#marks.get(run.id) as { cell: string; updatedAtUs: number }) }));
  }

  /** Adds some messages. A store that has been replaced ships no more. */
  grow(messages: number): void {
    const random = this.#random;
    for (let nth = 0; nth < messages; nth++) {
      const share = nth / messages;
      const able = this.#stores.filter(({ cell }, at) => {
        const isReplaced = this.#stores.findLastIndex((other) => other.cell === cell) > at;
        return isReplaced ? share < 0.4 : at === this.#stores.findIndex((other) => other.cell === cell) || share >= 0.4;
      });
      const store = random.pick(able);
      if (share >= 0.5 && this.counts.renames === 0) this.#rename(store, "renamed");
      if (random.chance(0.03)) this.#addFault(store);
      else if (random.chance(0.15)) this.#addParts(store, able);
      else this.#addRecords(store, random.integer(1, 8));
    }
  }

  #addRecords(store: SimulatedStore, count: number): void {
    const { subject, bytes, first } = this.#next(store, count);
    this.#push(subject, bytes, {
      firstSequence: first,
      lastSequence: store.nextSequence - 1,
      count: store.nextSequence - first,
    });
    if (this.#random.chance(0.05)) {
      this.counts.repeated++;
      const last = this.messages.at(-1) as LogMessage;
      this.messages.push({ ...last, streamSequence: last.streamSequence + 1 });
    }
  }

  /** The store gets another name, and ships its whole log again: also records that came before, in other batches. */
  #rename(store: SimulatedStore, cell: string): void {
    this.counts.renames++;
    const random = this.#random;
    const known = store.nextSequence - 1;
    this.#append(store, random.integer(1, 4), true);
    store.cell = cell;
    const subject = logSubject(cell, store.storeId);
    for (let at = 0; at < store.log.length; ) {
      const [first, ...others] = store.log.slice(at, at + random.integer(1, 8)) as [LogEntry, ...LogEntry[]];
      const batch = [first, ...others.filter(({ sequence }, nth) => sequence === first.sequence + nth + 1)];
      const unknown = batch.filter(({ sequence }) => sequence > known);
      this.#mark(
        store,
        unknown.flatMap(({ record }) => record ?? []),
        this.#tick(),
      );
      const lastSequence = first.sequence + batch.length - 1;
      const fields = { firstSequence: first.sequence, lastSequence, count: batch.length };
      this.#push(subject, Buffer.concat(batch.map(({ bytes }) => bytes)), fields);
      at += batch.length;
    }
  }

  /** One record in parts, between which another cell ships. */
  #addParts(store: SimulatedStore, able: readonly SimulatedStore[]): void {
    const random = this.#random;
    const parts = random.integer(2, 4);
    const others = able.filter((other) => other !== store);
    const { subject, bytes, first, record } = this.#next(store, 1, false);
    const size = Math.ceil(bytes.length / parts);
    for (let part = 1; part <= parts; part++) {
      this.counts.parts++;
      const piece = bytes.subarray((part - 1) * size, part * size);
      if (part === parts) this.#mark(store, [record as HistoryRecord], this.#tick());
      this.#push(subject, piece, { firstSequence: first, lastSequence: first, count: 1, part, parts });
      if (part < parts && others.length > 0 && random.chance(0.5)) this.#addRecords(random.pick(others), 2);
    }
  }

  /** A message that this service has not sent, also one that names a store that nobody has. */
  #addFault({ cell, storeId }: SimulatedStore): void {
    this.counts.faults++;
    const random = this.#random;
    const bytes = random.bytes(50);
    const fields = { firstSequence: 1, lastSequence: 1, count: 1 };
    this.#tick();
    const named = random.pick([storeId, "no-store", "99999999-1111-4111-8111-111111111111"]);
    this.#push(logSubject(cell, named), bytes, fields, random.chance(0.5) ? crc32(bytes) : 7);
  }

  /** The store's next records, as its log has them. */
  #next(store: SimulatedStore, count: number, marks = true) {
    // Damage of the cell's log leaves a gap.
    if (this.#random.chance(0.02)) store.nextSequence += this.#random.integer(1, 5);
    const first = store.nextSequence;
    const entries = this.#append(store, count, marks);
    const records = entries.flatMap(({ record }) => record ?? []);
    if (marks) this.#mark(store, records, this.#tick());
    const bytes = Buffer.concat(entries.map((entry) => entry.bytes));
    return { subject: logSubject(store.cell, store.storeId), bytes, first, record: records[0] };
  }

  #append(store: SimulatedStore, count: number, marks: boolean): LogEntry[] {
    const random = this.#random;
    const from = store.log.length;
    const append = (record: HistoryRecord, isMark: boolean): void => {
      const sequence = store.nextSequence++;
      store.log.push({ sequence, bytes: encodedRecord(record, sequence), record: isMark ? null : record });
    };
    for (let nth = 0; nth < count; nth++) append(nextRecord(store.history, random), false);
    const mark = { type: 2, index: new Uint8Array(0), body: new Uint8Array(0), timeUs: 1 };
    if (marks && random.chance(0.2)) append(mark as never, true);
    this.counts.records += count;
    return store.log.slice(from);
  }

  /** The stream's clock: now and then it stands still, or goes back. */
  #tick(): number {
    this.#timeUs += this.#random.chance(0.2) ? this.#random.integer(-3_000_000, 0) : this.#random.integer(0, 200_000);
    return this.#timeUs;
  }

  #mark({ cell }: SimulatedStore, records: readonly HistoryRecord[], timeUs: number): void {
    let markUs = Math.max(this.#markUs + 1, timeUs);
    for (const { type, index } of records) {
      const decoded = decodeIndex(type as RecordType, index);
      const runId = runOfIndex(decoded);
      // A run keeps the name of the cell that made it.
      if (runId !== null) this.#marks.set(runId, { cell: this.#marks.get(runId)?.cell ?? cell, updatedAtUs: markUs });
      this.#markUs = markUs++;
    }
  }

  #push(
    subject: string,
    bytes: Uint8Array,
    fields: { firstSequence: number; lastSequence: number; count: number; part?: number; parts?: number },
    faultCrc?: number,
  ): void {
    const streamSequence = (this.messages.at(-1)?.streamSequence ?? 0) + 1;
    const isFault = faultCrc !== undefined;
    const previousSequence = isFault ? 0 : (this.#shipped.get(subject) ?? 0);
    const whole = { part: 1, parts: 1, previousSequence, ...fields };
    const header = encodeFields({ ...whole, crc: faultCrc ?? crc32(bytes) });
    if (!isFault && whole.part === whole.parts) this.#shipped.set(subject, fields.lastSequence);
    this.messages.push(logMessage(subject, header, bytes, streamSequence, this.#timeUs));
  }
}

/** A message as the stream gives it. @param streamTimeUs when the stream took it */
export function logMessage(
  subject: string,
  header: Record<string, string>,
  bytes: Uint8Array,
  streamSequence: number,
  streamTimeUs: number,
): LogMessage {
  const get = (name: string): string => header[name] ?? "";
  return { subject, bytes, header: get, streamSequence, timeMs: Math.floor(streamTimeUs / 1000), streamTimeUs };
}

/** The record as a cell's log has it. */
export function encodedRecord({ type, index, body, timeUs }: RecordInput, sequence: number): Uint8Array {
  const bytes = new Uint8Array(recordLength(index.length, body.length));
  bytes.set(index, RECORD_HEADER_BYTES);
  bytes.set(body, RECORD_HEADER_BYTES + index.length);
  const lengths = { indexLength: index.length, bodyLength: body.length };
  const header = { type, flags: 1, sequence, durableUpTo: 0, timeUs, ...lengths };
  writeRecordHeader(bytes, new DataView(bytes.buffer), 0, header, sequence, 64);
  return bytes;
}
