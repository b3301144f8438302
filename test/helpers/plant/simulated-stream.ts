import { crc32 } from "node:zlib";
import { createRandom, type Random } from "../../../core/random.js";
import type { RunState } from "../../../core/run/run-state.js";
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
  counts = { records: 0, parts: 0, faults: 0, repeated: 0 };

  /** @param cells names; one that comes twice is a cell whose disk was replaced */
  constructor(seed: number, cells: readonly string[]) {
    this.#random = createRandom(seed);
    this.#stores = cells.map((cell, at) => ({
      cell,
      storeId: `${String(at).repeat(8)}-1111-4111-8111-111111111111`,
      history: new CellHistory(createRandom(seed + 100 + at)),
      nextSequence: 1,
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

  #addFault({ cell, storeId }: SimulatedStore): void {
    this.counts.faults++;
    const bytes = this.#random.bytes(50);
    const fields = { firstSequence: 1, lastSequence: 1, count: 1 };
    this.#tick();
    this.#push(logSubject(cell, storeId), bytes, fields, this.#random.chance(0.5) ? crc32(bytes) : 7);
  }

  /** The store's next records, as its log has them. */
  #next(store: SimulatedStore, count: number, marks = true) {
    const random = this.#random;
    // Damage of the cell's log leaves a gap.
    if (random.chance(0.02)) store.nextSequence += random.integer(1, 5);
    const first = store.nextSequence;
    const records = Array.from({ length: count }, () => nextRecord(store.history, random));
    const pieces = records.map((record) => encoded(record, store.nextSequence++));
    if (marks && random.chance(0.2)) {
      const mark = { type: 2, index: new Uint8Array(0), body: new Uint8Array(0), timeUs: 1 };
      pieces.push(encoded(mark as never, store.nextSequence++));
    }
    this.counts.records += count;
    if (marks) this.#mark(store, records, this.#tick());
    return { subject: logSubject(store.cell, store.storeId), bytes: Buffer.concat(pieces), first, record: records[0] };
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
      if (runId !== null) this.#marks.set(runId, { cell, updatedAtUs: markUs });
      this.#markUs = markUs++;
    }
  }

  #push(
    subject: string,
    bytes: Uint8Array,
    fields: { firstSequence: number; lastSequence: number; count: number; part?: number; parts?: number },
    crc = crc32(bytes),
  ): void {
    const header = encodeFields({ part: 1, parts: 1, previousSequence: fields.firstSequence - 1, ...fields, crc });
    const streamSequence = (this.messages.at(-1)?.streamSequence ?? 0) + 1;
    const get = (name: string): string => header[name] ?? "";
    const streamTimeUs = this.#timeUs;
    const timeMs = Math.floor(streamTimeUs / 1000);
    this.messages.push({ subject, bytes, header: get, streamSequence, timeMs, streamTimeUs });
  }
}

function encoded({ type, index, body, timeUs }: HistoryRecord, sequence: number): Uint8Array {
  const bytes = new Uint8Array(recordLength(index.length, body.length));
  bytes.set(index, RECORD_HEADER_BYTES);
  bytes.set(body, RECORD_HEADER_BYTES + index.length);
  const lengths = { indexLength: index.length, bodyLength: body.length };
  const header = { type, flags: 1, sequence, durableUpTo: 0, timeUs, ...lengths };
  writeRecordHeader(bytes, new DataView(bytes.buffer), 0, header, sequence, 64);
  return bytes;
}
