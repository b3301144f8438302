import type { CommittedBatch } from "../../../storage/log/committed-batch.js";
import { BufferPool } from "../../buffer-pool.js";

/**
 * Most bytes on their way to the front. This is enough for some large batches, and it bounds memory while the front is
 * busy.
 */
const MAXIMUM_AHEAD_BYTES = 32 * 1024 * 1024;
/** Most bytes of memory that is kept for the next batches. */
const KEPT_BYTES = 8 * 1024 * 1024;

/**
 * Sends committed records to the front, in order, and counts what the front has not taken yet. It never holds records
 * itself: while the front has not caught up, whoever makes new records has to wait.
 */
export class BatchStream {
  readonly #send: (batch: CommittedBatch, transfer: ArrayBuffer) => void;
  readonly #onBehind: (isBehind: boolean) => void;
  /** The front sends the memory of a batch back when it has taken it. */
  readonly #memory = new BufferPool(KEPT_BYTES, batchCapacity);
  /** Memory for the next batch. */
  #reserved: Uint8Array<ArrayBuffer> | null = null;
  /** Last sequence numbers of the batches that the front has not taken yet. */
  readonly #untaken: number[] = [];
  #aheadBytes = 0;
  #isBehind = false;
  #waiting: (() => void)[] = [];

  constructor(options: {
    send: (batch: CommittedBatch, transfer: ArrayBuffer) => void;
    /** Called when the front can no longer keep up, and when it has caught up. */
    onBehind: (isBehind: boolean) => void;
  }) {
    this.#send = options.send;
    this.#onBehind = options.onBehind;
  }

  /** Memory of batches that the front has not taken yet. */
  get aheadBytes(): number {
    return this.#aheadBytes;
  }

  get isBehind(): boolean {
    return this.#isBehind;
  }

  /** Takes the memory for the next batch of this many bytes. @throws RangeError if there is none */
  reserve(lengthBytes: number): void {
    this.#reserved ??= this.#memory.take(lengthBytes);
  }

  /**
   * Sends a copy of the batch, because its bytes belong to the log. A hint's bytes are sent without a copy: nobody
   * reads them again.
   */
  send(batch: CommittedBatch): void {
    const bytes = batch.isHint ? (batch.bytes as Uint8Array<ArrayBuffer>) : this.#copyOf(batch.bytes);
    this.#untaken.push(batch.lastSequence);
    this.#aheadBytes += bytes.buffer.byteLength;
    this.#send({ ...batch, bytes }, bytes.buffer);
    if (!this.#isBehind && this.#aheadBytes > MAXIMUM_AHEAD_BYTES) {
      this.#isBehind = true;
      this.#onBehind(true);
    }
  }

  /** A copy at the start of a buffer of its own, which may be larger. */
  #copyOf(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
    const { buffer } = this.#reserved ?? this.#memory.take(bytes.length);
    this.#reserved = null;
    const copy = new Uint8Array(buffer, 0, bytes.length);
    copy.set(bytes);
    return copy;
  }

  /**
   * The front has taken a batch and does not read its memory any more.
   *
   * @returns the batch's last sequence number: the front takes batches in the order in which they were sent
   */
  taken(memory: ArrayBuffer): number {
    const sequence = this.#untaken.shift() as number;
    this.#release(memory);
    return sequence;
  }

  #release(memory: ArrayBuffer): void {
    this.#aheadBytes -= memory.byteLength;
    this.#memory.release({ buffer: memory });
    if (this.#aheadBytes > MAXIMUM_AHEAD_BYTES / 2) return;
    for (const resolve of this.#waiting.splice(0)) resolve();
    if (!this.#isBehind) return;
    this.#isBehind = false;
    this.#onBehind(false);
  }

  /** Resolves when the front has caught up. Used while the log is read at a start. */
  caughtUp(): Promise<void> {
    if (!this.#isBehind) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}

/** Powers of two from 1 KiB: batches have any size. */
function batchCapacity(lengthBytes: number): number {
  return Math.max(1024, 2 ** (32 - Math.clz32(lengthBytes - 1)));
}
