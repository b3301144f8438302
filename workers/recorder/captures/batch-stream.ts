import type { CommittedBatch } from "../../../storage/log/committed-batch.js";
import { BatchMemory } from "./batch-memory.js";

/**
 * Most bytes on their way to the front. This is enough for some large batches, and it bounds memory while the front is
 * busy.
 */
const MAXIMUM_AHEAD_BYTES = 32 * 1024 * 1024;

/**
 * Sends committed records to the front, in order, and counts what the front has not taken yet. It never holds records
 * itself: while the front has not caught up, whoever makes new records has to wait.
 */
export class BatchStream {
  readonly #send: (batch: CommittedBatch, transfer: ArrayBuffer) => void;
  readonly #onBehind: (isBehind: boolean) => void;
  readonly #memory = new BatchMemory();
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
    this.#memory.reserve(lengthBytes);
  }

  /**
   * Sends a copy of the batch, because its bytes belong to the log. A hint's bytes are sent without a copy: nobody
   * reads them again.
   */
  send(batch: CommittedBatch): void {
    const bytes = batch.isHint ? (batch.bytes as Uint8Array<ArrayBuffer>) : this.#memory.copyOf(batch.bytes);
    this.#untaken.push(batch.lastSequence);
    this.#aheadBytes += bytes.buffer.byteLength;
    this.#send({ ...batch, bytes }, bytes.buffer);
    if (!this.#isBehind && this.#aheadBytes > MAXIMUM_AHEAD_BYTES) {
      this.#isBehind = true;
      this.#onBehind(true);
    }
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
    this.#memory.giveBack(memory);
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
