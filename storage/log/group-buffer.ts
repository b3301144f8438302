import type { Durable } from "./log-options.js";
import {
  LOG_RECORD_TYPE,
  RECORD_HEADER_BYTES,
  recordLength,
  setDurableUpTo,
  writeRecordHeader,
} from "./record-format.js";

/** A group of some dozens of records of usual size; it doubles from there. */
const INITIAL_BYTES = 64 * 1024;
/** A buffer that one group has made larger than this is given up with it. */
const KEPT_BYTES = 4 * 1024 * 1024;

const NO_NEEDS: ReadonlySet<Durable> = new Set();

/** Records that are written and synced together, encoded as they will stand on disk. Its buffer is used again and again. */
export class LogGroup {
  length = 0;
  /** Of the first record in its segment. */
  offset = 0;
  firstSequence = 0;
  lastSequence = 0;
  /** Of the last record that is not a mark; 0 when there is none. */
  lastDataSequence = 0;
  lastTimeUs = 0;
  #bytes = new Uint8Array(INITIAL_BYTES);
  #view = new DataView(this.#bytes.buffer);
  #salt = 0;
  #claim = 0;
  #needs: Set<Durable> | null = null;

  /** Empties it, for records from `firstSequence` on at this place. */
  begin(salt: number, offset: number, firstSequence: number): void {
    this.clear();
    this.#salt = salt;
    this.offset = offset;
    this.firstSequence = firstSequence;
    this.lastSequence = firstSequence - 1;
  }

  /** Empties it and lets go of a large buffer. */
  clear(): void {
    this.length = 0;
    this.lastDataSequence = 0;
    this.lastTimeUs = 0;
    this.#needs = null;
    if (this.#bytes.length > KEPT_BYTES) this.#resize(INITIAL_BYTES);
  }

  get endOffset(): number {
    return this.offset + this.length;
  }

  get needs(): ReadonlySet<Durable> {
    return this.#needs ?? NO_NEEDS;
  }

  add(
    type: number,
    flags: number,
    sequence: number,
    durableUpTo: number,
    timeUs: number,
    index: Uint8Array,
    body: Uint8Array,
    needs: Durable | undefined,
  ): void {
    const at = this.length;
    const length = recordLength(index.length, body.length);
    if (at + length > this.#bytes.length) this.#resize(Math.max(2 * this.#bytes.length, at + length));
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

  /** The group's bytes, its first record claiming what is durable by now. Valid until the group is begun again. */
  seal(durableUpTo: number): Uint8Array {
    if (durableUpTo > this.#claim) setDurableUpTo(this.#bytes, this.#view, 0, durableUpTo, this.#salt, this.offset);
    return this.#bytes.subarray(0, this.length);
  }

  #resize(sizeBytes: number): void {
    const bytes = new Uint8Array(sizeBytes);
    bytes.set(this.#bytes.subarray(0, this.length));
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer);
  }
}
