import { lowerBound } from "../../core/lower-bound.js";
import { encodeFrame, renumberFrame } from "./frame-codec.js";

/** A message that the service has not answered yet. Its bytes are kept for a resend. */
interface Entry {
  /** The sequence number ascends within the queue. It has no meaning before the first welcome. */
  sequence: number;
  /** Header, body and padding, then the payload if there is one. They are dropped once the message is settled. */
  frame: Uint8Array[];
  sizeBytes: number;
  settled: boolean;
  resolve(): void;
  reject(error: Error): void;
}

export interface QueuedMessage {
  /** Resolves when the message is durable. Rejects with the service's refusal, or when the client gives up. */
  acknowledged: Promise<void>;
}

/** What a welcome has shown about the queue. */
export interface Continuation {
  /** Messages that the service had acknowledged and has lost. It is above 0 only without full durability. */
  acknowledgedLost: number;
  /** Another instance has sent under this name since the last welcome. */
  isShared: boolean;
  /**
   * The service has sequence numbers of this instance that were never sent from here, so another process uses it. The
   * queue is unchanged then.
   */
  isForeign: boolean;
}

/**
 * The messages that a producer keeps until they are acknowledged, under ascending sequence numbers. The queue knows how
 * far they have been written to the present connection.
 */
export class UnacknowledgedQueue {
  #entries: Entry[] = [];
  /** Index of the oldest entry. Entries before it are settled. */
  #head = 0;
  /** Index of the next entry to write to the present connection. */
  #cursor = 0;
  /** Sequence number of the next message that is added. */
  #nextSequence = 1;
  /** The service has said how far this producer has come. */
  #numbered = false;
  #highestSent = 0;
  /** All messages up to this sequence number are answered. */
  #settledUpTo = 0;
  /** `committed` of the last welcome. */
  #lastCommitted = 0;
  #unsettledBytes = 0;
  #unsettledCount = 0;

  get sizeBytes(): number {
    return this.#unsettledBytes;
  }

  get count(): number {
    return this.#unsettledCount;
  }

  /** Takes a message. The payload is not copied. Throws a RangeError if it does not fit a frame. */
  add(body: object, payload: Uint8Array | undefined): QueuedMessage {
    const sequence = this.#nextSequence;
    const frame = encodeFrame({ kind: "message", sequence, body, ...(payload && { payload }) });
    this.#nextSequence++;
    const sizeBytes = frame.reduce((sum, part) => sum + part.length, 0);
    const acknowledged = new Promise<void>((resolve, reject) => {
      this.#entries.push({ sequence, frame, sizeBytes, settled: false, resolve, reject });
    });
    // A rejection that nobody looks at must not end the process. The client reports refusals elsewhere too.
    acknowledged.catch(() => {});
    this.#unsettledBytes += sizeBytes;
    this.#unsettledCount++;
    return { acknowledged };
  }

  /** Frame of the next unsettled message that was not given to this connection; undefined if there is none. */
  takeNextToSend(): Uint8Array[] | undefined {
    while (this.#cursor < this.#entries.length) {
      const entry = this.#entries[this.#cursor] as Entry;
      this.#cursor++;
      if (entry.settled) continue;
      this.#highestSent = Math.max(this.#highestSent, entry.sequence);
      return entry.frame;
    }
    return undefined;
  }

  /** Everything up to `sequence` is durable. */
  acknowledge(sequence: number): void {
    while (this.#head < this.#cursor) {
      const entry = this.#entries[this.#head] as Entry;
      if (entry.sequence > sequence) break;
      this.#settle(entry)?.resolve();
      this.#settledUpTo = entry.sequence;
      this.#head++;
    }
    if (this.#head > 1024 && this.#head > this.#entries.length / 2) {
      this.#entries = this.#entries.slice(this.#head);
      this.#cursor -= this.#head;
      this.#head = 0;
    }
  }

  refuse(sequence: number, error: Error): void {
    const isBelow = (at: number): boolean => (this.#entries[at] as Entry).sequence < sequence;
    const place = lowerBound(this.#head, this.#cursor, isBelow);
    const entry = this.#entries[place];
    if (place < this.#cursor && entry?.sequence === sequence) this.#settle(entry)?.reject(error);
  }

  rejectAll(error: Error): void {
    for (const entry of this.#entries.slice(this.#head)) this.#settle(entry)?.reject(error);
  }

  /**
   * Goes on with a new connection, whose welcome said `committed` and `yours`. All unsettled messages are written
   * again. Those at or below `yours` are stored. They keep their sequence numbers and are still sent again, because
   * only the second answer tells whether they were refused. The others get new sequence numbers from `committed + 1`
   * on: another instance may have used their old ones.
   */
  continueAfter(committed: number, yours: number): Continuation {
    const continuation = { acknowledgedLost: 0, isShared: false, isForeign: false };
    if (this.#numbered) {
      if (yours > this.#highestSent) return { ...continuation, isForeign: true };
      continuation.acknowledgedLost = Math.max(0, this.#settledUpTo - yours);
      continuation.isShared = committed > Math.max(this.#highestSent, this.#lastCommitted);
    }
    this.#entries = this.#entries.slice(this.#head).filter((entry) => !entry.settled);
    this.#head = 0;
    this.#cursor = 0;
    this.#nextSequence = committed + 1;
    for (const entry of this.#entries) {
      if (this.#numbered && entry.sequence <= yours) continue;
      entry.sequence = this.#nextSequence++;
      renumberFrame(entry.frame[0] as Uint8Array, entry.sequence);
    }
    this.#numbered = true;
    this.#lastCommitted = committed;
    if (continuation.acknowledgedLost > 0) {
      this.#settledUpTo = yours;
      this.#highestSent = committed;
    }
    return continuation;
  }

  /** Marks an entry as settled and drops its bytes; undefined if it was settled before. */
  #settle(entry: Entry): Entry | undefined {
    if (entry.settled) return undefined;
    entry.settled = true;
    entry.frame = [];
    this.#unsettledBytes -= entry.sizeBytes;
    this.#unsettledCount--;
    return entry;
  }
}
