import { readRecordHeader, recordLength } from "../../storage/log/record-format.js";
import {
  cellOfSubject,
  cellSubjects,
  decodeFields,
  LOG_STREAM,
  logSubject,
  type MessageFields,
  storeIdOfSubject,
} from "./log-message.js";
import type { LogTail } from "./log-tail.js";
import { placeless } from "./placeless-records.js";
import { lastSent, type PlantClient, type StoredMessage } from "./plant-client.js";

export type DifferenceCode = "missing" | "changed" | "doubled" | "damaged" | "other_epoch" | "unshipped";

export interface Difference {
  code: DifferenceCode;
  message: string;
}

export interface VerifyResult {
  /** The last name of the cell in the plant; null if the plant has nothing of this store. */
  cell: string | null;
  messages: number;
  /** Records that are the same in both. */
  records: number;
  differences: number;
  /** Records so new that they may be on their way. */
  underWay: number;
}

export interface VerifyOptions {
  plant: Pick<PlantClient, "nextMessage" | "lastMessage" | "previousMessage">;
  storeId: string;
  /** Of the store's log, at its beginning. */
  tail: LogTail;
  onDifference(difference: Difference): void;
  nowMs?: () => number;
}

/** A record that is younger may be on its way: the store may be served. */
const UNDER_WAY_MS = 10_000;

interface OwnRecord {
  sequence: number;
  timeUs: number;
  bytes: Uint8Array;
}

/** Compares the records of a log with those that the plant has of it, message by message. Both are read once, in order. */
export async function verifyPlant(options: VerifyOptions): Promise<VerifyResult> {
  const comparison = new Comparison(options);
  const { plant, storeId } = options;
  // A store that got another name has been shipped again under it, from its beginning.
  const { sent } = await lastSent(plant, `inspection.log.*.${storeId}`);
  const cell = sent === null ? null : cellOfSubject(sent.message.subject);
  if (cell !== null) {
    // All stores of the cell: one that ships behind this one's first message is another epoch.
    let message = await plant.nextMessage(LOG_STREAM, logSubject(cell, storeId), 1);
    while (message !== null) {
      await comparison.take(message);
      message = await plant.nextMessage(LOG_STREAM, cellSubjects(cell), message.streamSequence + 1);
    }
  }
  await comparison.end();
  return { cell, ...comparison.counts };
}

interface PartsSoFar {
  firstSequence: number;
  pieces: Uint8Array[];
  /** When the last one came. */
  timeMs: number;
}

const NO_PARTS: PartsSoFar = { firstSequence: 0, pieces: [], timeMs: 0 };

class Comparison {
  readonly counts = { messages: 0, records: 0, differences: 0, underWay: 0 };
  readonly #options: VerifyOptions;
  readonly #own: OwnRecords;
  /** The next sequence number, and the parts of its record so far. */
  #next = 1;
  #parts: PartsSoFar = NO_PARTS;
  #otherStores = new Set<string>();

  constructor(options: VerifyOptions) {
    this.#options = options;
    this.#own = new OwnRecords(options.tail);
  }

  async take(message: StoredMessage): Promise<void> {
    const fields = decodeFields(message.header, message.bytes);
    const storeId = storeIdOfSubject(message.subject);
    const isOwn = storeId === this.#options.storeId;
    if (isOwn) this.counts.messages++;
    if (fields === null) {
      this.#differ("damaged", `message ${message.streamSequence} is damaged, or was not sent by this service`);
      return;
    }
    if (!isOwn) {
      if (this.#otherStores.has(storeId)) return;
      this.#otherStores.add(storeId);
      this.#differ(
        "other_epoch",
        `message ${message.streamSequence} and maybe later ones are of another store, ${storeId}: it has the cell's name since then`,
      );
      return;
    }
    const { firstSequence, lastSequence, part, parts } = fields;
    const named = `message ${message.streamSequence} (records ${firstSequence} to ${lastSequence}${parts > 1 ? `, part ${part} of ${parts}` : ""})`;
    if (lastSequence < this.#next) {
      this.#differ("doubled", `${named}: the plant has these records before it`);
      return;
    }
    // Parts of a record that never became whole do not count: the cell has begun again.
    if (part === 1) this.#parts = { firstSequence, pieces: [], timeMs: 0 };
    const { pieces } = this.#parts;
    // The record is missing then, which the next message shows.
    if (this.#parts.firstSequence !== firstSequence || pieces.length !== part - 1) return;
    pieces.push(message.bytes);
    this.#parts.timeMs = message.timeMs;
    if (part < parts) return;
    this.#parts = NO_PARTS;
    await this.#compare(named, message.streamSequence, fields, Buffer.concat(pieces));
  }

  async #compare(named: string, streamSequence: number, fields: MessageFields, bytes: Uint8Array): Promise<void> {
    const { firstSequence, lastSequence } = fields;
    if (firstSequence < this.#next)
      this.#differ("doubled", `${named}: the plant has records up to ${this.#next - 1} before it`);
    const skipped = await this.#own.until(firstSequence);
    const missing = skipped.filter(({ sequence }) => sequence >= this.#next);
    if (missing.length > 0)
      this.#differ(
        "missing",
        `records ${missing[0]?.sequence} to ${missing.at(-1)?.sequence} are missing in the plant, before message ${streamSequence}`,
      );
    const own = await this.#own.range(firstSequence, lastSequence);
    const expected = placeless(Buffer.concat(own.map((record) => record.bytes)));
    if (own.length === 0) this.#differ("changed", `${named}: the log of this store has no such records`);
    else if (Buffer.compare(expected, placeless(bytes)) !== 0)
      this.#differ("changed", `${named}: the log of this store has other bytes`);
    else this.counts.records += own.length;
    this.#next = lastSequence + 1;
  }

  async end(): Promise<void> {
    const { firstSequence, pieces, timeMs } = this.#parts;
    const sinceMs = (this.#options.nowMs ?? Date.now)() - UNDER_WAY_MS;
    const areUnderWay = pieces.length > 0 && timeMs >= sinceMs;
    if (pieces.length > 0 && !areUnderWay)
      this.#differ("missing", `record ${firstSequence}: the plant has only its first ${pieces.length} parts`);
    const rest = (await this.#own.rest()).filter(({ sequence }) => sequence >= this.#next);
    const old = rest.filter(
      ({ sequence, timeUs }) => timeUs < 1000 * sinceMs && !(areUnderWay && sequence === firstSequence),
    );
    this.counts.underWay = rest.length - old.length;
    if (old.length > 0)
      this.#differ("unshipped", `records ${old[0]?.sequence} to ${old.at(-1)?.sequence} have not been shipped yet`);
  }

  #differ(code: DifferenceCode, message: string): void {
    this.counts.differences++;
    this.#options.onDifference({ code, message });
  }
}

/** The records of a log, one after the other. A few stay in memory, for messages that overlap. */
class OwnRecords {
  readonly #tail: LogTail;
  #records: OwnRecord[] = [];

  constructor(tail: LogTail) {
    this.#tail = tail;
  }

  /** Takes the records before this sequence number. */
  async until(sequence: number): Promise<OwnRecord[]> {
    const taken: OwnRecord[] = [];
    for (;;) {
      const at = this.#records.findIndex((record) => record.sequence >= sequence);
      taken.push(...this.#records.splice(0, at < 0 ? this.#records.length : at).map(withoutBytes));
      if (at >= 0 || !(await this.#read())) return taken;
    }
  }

  /** The records from `first` to `last`, which stay here: the next message may be a part of the same record. */
  async range(first: number, last: number): Promise<OwnRecord[]> {
    while ((this.#records.at(-1)?.sequence ?? 0) < last && (await this.#read()));
    return this.#records.filter(({ sequence }) => sequence >= first && sequence <= last);
  }

  /** All that are left, without their bytes. */
  async rest(): Promise<OwnRecord[]> {
    return this.until(Number.MAX_SAFE_INTEGER);
  }

  async #read(): Promise<boolean> {
    const batch = await this.#tail.next();
    if (batch === null) return false;
    const { bytes } = batch;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let at = 0; at < bytes.length; ) {
      const { sequence, timeUs, indexLength, bodyLength } = readRecordHeader(view, at);
      const end = at + recordLength(indexLength, bodyLength);
      this.#records.push({ sequence, timeUs, bytes: bytes.subarray(at, end) });
      at = end;
    }
    return true;
  }
}

function withoutBytes({ sequence, timeUs }: OwnRecord): OwnRecord {
  return { sequence, timeUs, bytes: NOTHING };
}

const NOTHING = new Uint8Array(0);
