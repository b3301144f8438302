import { canonicalUuid } from "../../core/identifiers.js";
import type { CellChange } from "../../core/link/change.js";
import type { RecordInput } from "../../storage/log/log-options.js";
import {
  isContentIntact,
  LOG_RECORD_TYPE,
  RECORD_FLAG_MUST_UNDERSTAND,
  RECORD_HEADER_BYTES,
  readRecordHeader,
  recordLength,
} from "../../storage/log/record-format.js";
import { decodeChanges } from "../../storage/records/change-record.js";
import { decodeIndex, isChangeRecordType, isKnownRecordType, RECORD_TYPE } from "../../storage/records/record-index.js";
import {
  cellOfSubject,
  decodeFields,
  decodeSender,
  isCellName,
  type MessageFields,
  storeIdOfSubject,
} from "../plant/log-message.js";
import { type LogMessage, PlantRefusal } from "../plant/plant-client.js";

/** What a message of the stream says, or the last part of a record that came in parts. */
export interface ReadMessage {
  cell: string;
  storeId: string;
  /** The records of the cell's log, without marks. */
  records: RecordInput[];
  /** The last sequence number of the cell's log that the message has; 0 if it cannot be read. */
  lastSequence: number;
  /** How many records the cell had more when it sent the message. */
  lagRecords: number;
  /** Why records are missing; null if none are. */
  fault: string | null;
}

/** What the hub has of a store. */
export interface KnownStore {
  /** The last name that it was shipped under. */
  readonly cell: string;
  /** By name: the last sequence number of the store's log that came under it. */
  readonly lastSequences: Readonly<Record<string, number>>;
}

/** The last record of the store that the hub has, whatever it was shipped under. */
export function lastSequenceOf(store: KnownStore | undefined): number {
  return Math.max(0, ...Object.values(store?.lastSequences ?? {}));
}

interface Parts {
  fields: MessageFields;
  messages: LogMessage[];
}

/** Reads the records out of messages, joins parts, and verifies everything that an index of the view relies on. */
export class MessageReader {
  /** By subject: parts of a record that is not whole yet. */
  readonly #parts = new Map<string, Parts>();
  /** Undefined after a change of the parts. */
  #places: readonly number[] | undefined;

  /** Places in the stream of the parts that are still needed, ascending. The same array until they change. */
  get partSequences(): readonly number[] {
    this.#places ??= [...this.#parts.values()]
      .flatMap(({ messages }) => messages.map(({ streamSequence }) => streamSequence))
      .sort((left, right) => left - right);
    return this.#places;
  }

  clear(): void {
    this.#parts.clear();
    this.#places = undefined;
  }

  #drop(subject: string): void {
    if (this.#parts.delete(subject)) this.#places = undefined;
  }

  /**
   * @param knownOf what the hub has of the store with this id
   * @returns null for a part of a record that is not whole yet
   * @throws PlantRefusal for a record that needs a newer release
   */
  read(message: LogMessage, knownOf: (storeId: string) => KnownStore | undefined): ReadMessage | null {
    const [, , cell = "", storeId = ""] = message.subject.split(".");
    const place = `message ${message.streamSequence} of the log stream`;
    const failed = (reason: string): ReadMessage => {
      const fault = `${place} ${reason}: its records are missing here`;
      return { cell, storeId, records: [], lastSequence: 0, lagRecords: 0, fault };
    };
    if (!isCellName(cell)) return { ...failed(`is of ${message.subject}, which is no cell`), cell: "unknown" };
    if (canonicalUuid(storeId) !== storeId) return failed(`is of ${message.subject}, which is no store`);
    const fields = decodeFields(message.header, message.bytes);
    if (fields === null) return failed("is damaged, or was not sent by this service");
    this.#dropDeadParts(cell, storeId, message.subject);
    const joined = this.#joined(message, fields);
    if (joined === null) return null;
    if (typeof joined === "string") return failed(joined);
    const known = knownOf(storeId);
    const before = known?.lastSequences[cell];
    if (fields.firstSequence <= (before ?? 0)) return failed("repeats records");
    const { lastSequence, previousSequence } = fields;
    const knownSequence = lastSequenceOf(known);
    // What came under another name is not missing.
    const [firstMissing, lastMissing] = [knownSequence + 1, previousSequence];
    const gap =
      firstMissing > lastMissing
        ? null
        : `${place} comes behind record ${lastMissing} of ${cell}: records ${firstMissing} to ${lastMissing} are missing here`;
    // Under a new name a cell ships its whole log again. It has no reason to ship under the former one again.
    const isFormerName = known !== undefined && before !== undefined && known.cell !== cell;
    const copy = isFormerName
      ? `${place} is of a store that was also shipped as the cell ${known.cell}: if one is a copy, give it a data directory of its own`
      : null;
    const fault = [gap, copy].filter((text) => text !== null).join("; ") || null;
    const lagRecords = Math.max(0, decodeSender(message.header).logSequence - Math.max(lastSequence, knownSequence));
    try {
      const records = recordsOf(joined, fields, knownSequence);
      return { cell, storeId, records, lastSequence, lagRecords, fault };
    } catch (error) {
      if (error instanceof PlantRefusal) throw error;
      return failed(`has records that cannot be read (${(error as Error).message})`);
    }
  }

  /** A cell that has another store now, or a store that has another name, never finishes the record that it had begun. */
  #dropDeadParts(cell: string, storeId: string, subject: string): void {
    for (const begun of this.#parts.keys()) {
      const isDead = cellOfSubject(begun) === cell || storeIdOfSubject(begun) === storeId;
      if (isDead && begun !== subject) this.#drop(begun);
    }
  }

  /** The whole message; null while parts are still to come; a reason if parts are missing. */
  #joined(message: LogMessage, fields: MessageFields): Uint8Array | string | null {
    const { subject } = message;
    const { part, parts, firstSequence } = fields;
    const before = this.#parts.get(subject);
    this.#drop(subject);
    // The cell never sent the rest of a record before.
    if (parts === 1) return message.bytes;
    const isNext = before?.fields.firstSequence === firstSequence && before.messages.length === part - 1;
    if (part > 1 && !isNext) return `is part ${part} of ${parts}, without the others`;
    const messages = part === 1 ? [message] : [...(before?.messages ?? []), message];
    if (part === parts) return Buffer.concat(messages.map(({ bytes }) => bytes));
    this.#parts.set(subject, { fields, messages });
    this.#places = undefined;
    return null;
  }
}

/** The records above `knownSequence`. */
function recordsOf(
  bytes: Uint8Array,
  { firstSequence, lastSequence }: MessageFields,
  knownSequence: number,
): RecordInput[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const records: RecordInput[] = [];
  let next = firstSequence;
  for (let at = 0; at < bytes.length; next++) {
    if (at + RECORD_HEADER_BYTES > bytes.length) throw new Error("it ends within a record");
    const header = readRecordHeader(view, at);
    const end = at + recordLength(header.indexLength, header.bodyLength);
    if (end > bytes.length) throw new Error("it ends within a record");
    if (header.sequence !== next || !isContentIntact(bytes, at, header)) throw new Error(`record ${next} is damaged`);
    const bodyAt = at + RECORD_HEADER_BYTES + header.indexLength;
    const index = bytes.subarray(at + RECORD_HEADER_BYTES, bodyAt);
    const body = bytes.subarray(bodyAt, bodyAt + header.bodyLength);
    const { type, flags, timeUs } = header;
    if (type !== LOG_RECORD_TYPE.mark && header.sequence > knownSequence) {
      verify(type, flags, index, body);
      records.push({ type, flags, timeUs, index, body });
    }
    at = end;
  }
  if (next !== lastSequence + 1) throw new Error(`it ends with record ${next - 1}, not ${lastSequence}`);
  return records;
}

/** The body of a run's end is only decoded when somebody asks for the run. */
function verify(type: number, flags: number, index: Uint8Array, body: Uint8Array): void {
  if (!isKnownRecordType(type)) {
    if ((flags & RECORD_FLAG_MUST_UNDERSTAND) === 0) return;
    throw new PlantRefusal(`the plant has records of type ${type}: they need a newer release of the hub`);
  }
  if (type === RECORD_TYPE.plantMessage) throw new Error("it has a record of a hub");
  decodeIndex(type, index);
  if (isChangeRecordType(type) && type !== RECORD_TYPE.runEnded && type !== RECORD_TYPE.refusal) {
    for (const _change of decodeChanges(type, body) as CellChange[]);
  }
}
