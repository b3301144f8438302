import type { Durable, RecordInput } from "./log-options.js";
import {
  LOG_RECORD_TYPE,
  RECORD_HEADER_BYTES,
  recordLength,
  setDurableUpTo,
  writeRecordHeader,
} from "./record-format.js";
import { assertContentFits } from "./segment.js";

const FIRST_OWNER_TYPE = 16;
/** Room for a few dozen records of usual size; it doubles from there. */
const INITIAL_BYTES = 64 * 1024;
/** A buffer that grew larger than this is not kept for the next group. */
const KEPT_BYTES = 4 * 1024 * 1024;

const NO_NEEDS: ReadonlySet<Durable> = new Set();

/**
 * Group commit: the records of a group are written and synced together, so that many share one sync. `#commitGroup` in
 * log.ts does that. This class holds the records, encoded as they will be on disk. It uses its buffer again and again.
 */
export class LogGroup {
  length = 0;
  /** Offset of the first record in its segment. */
  offset = 0;
  firstSequence = 0;
  lastSequence = 0;
  /** Sequence number of the last record that is not a mark; 0 when there is none. */
  lastDataSequence = 0;
  lastTimeUs = 0;
  readonly #initial = new Uint8Array(INITIAL_BYTES);
  #bytes = this.#initial;
  #view = new DataView(this.#bytes.buffer);
  #salt = 0;
  #claim = 0;
  #needs: Set<Durable> | null = null;

  /** Empties the group for records from `firstSequence` on, which will be written at `offset`. */
  begin(salt: number, offset: number, firstSequence: number): void {
    this.clear();
    this.#salt = salt;
    this.offset = offset;
    this.firstSequence = firstSequence;
    this.lastSequence = firstSequence - 1;
  }

  /** Empties the group and frees a large buffer. It allocates nothing. */
  clear(): void {
    this.length = 0;
    this.lastDataSequence = 0;
    this.lastTimeUs = 0;
    this.#needs = null;
    if (this.#bytes.length > KEPT_BYTES) this.#use(this.#initial);
  }

  get endOffset(): number {
    return this.offset + this.length;
  }

  get needs(): ReadonlySet<Durable> {
    return this.#needs ?? NO_NEEDS;
  }

  /** @throws RangeError when there is no memory for it; then nothing was added */
  add(sequence: number, durableUpTo: number, { type, flags = 0, timeUs, index, body, needs }: RecordInput): void {
    const at = this.length;
    const length = recordLength(index.length, body.length);
    if (at + length > this.#bytes.length) this.#grow(Math.max(2 * this.#bytes.length, at + length));
    const bytes = this.#bytes;
    const bodyAt = at + RECORD_HEADER_BYTES + index.length;
    bytes.set(index, at + RECORD_HEADER_BYTES);
    bytes.set(body, bodyAt);
    for (let padding = bodyAt + body.length; padding < at + length; padding++) bytes[padding] = 0;
    writeRecordHeader(
      bytes,
      this.#view,
      at,
      { type, flags, sequence, durableUpTo, timeUs, indexLength: index.length, bodyLength: body.length },
      this.#salt,
      this.offset + at,
    );
    this.length = at + length;
    if (at === 0) this.#claim = durableUpTo;
    this.lastSequence = sequence;
    if (type !== LOG_RECORD_TYPE.mark) this.lastDataSequence = sequence;
    if (timeUs > this.lastTimeUs) this.lastTimeUs = timeUs;
    if (needs !== undefined) {
      this.#needs ??= new Set();
      this.#needs.add(needs);
    }
  }

  /** The group's bytes, valid until the next `begin`. The first record claims `durableUpTo`. */
  finish(durableUpTo: number): Uint8Array {
    if (durableUpTo > this.#claim) setDurableUpTo(this.#bytes, this.#view, 0, durableUpTo, this.#salt, this.offset);
    return this.#bytes.subarray(0, this.length);
  }

  #grow(sizeBytes: number): void {
    const bytes = new Uint8Array(sizeBytes);
    bytes.set(this.#bytes.subarray(0, this.length));
    this.#use(bytes);
  }

  #use(bytes: Uint8Array<ArrayBuffer>): void {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer);
  }
}

/**
 * @throws RangeError when the type or the time is out of range
 * @throws StorageError `record_too_large`
 */
export function assertRecordInput(input: RecordInput): void {
  if (!(input.type >= FIRST_OWNER_TYPE && input.type <= 0xffff)) {
    throw new RangeError(`the record's type is ${input.type}, but must be ${FIRST_OWNER_TYPE} to 65535`);
  }
  if (!(input.timeUs >= 0 && input.timeUs <= Number.MAX_SAFE_INTEGER)) {
    throw new RangeError(`the record's time is ${input.timeUs}, but must be 0 to 2^53 - 1 microseconds`);
  }
  assertContentFits("a record", input.index.length, input.body.length);
}
