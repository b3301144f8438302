import { encodeFrame, renumberFrame } from "./frame-codec.js";

/** A message that the service has not answered yet; its bytes are kept for a resend. */
interface Entry {
  /** Ascending within the queue. Until the first welcome it stands for nothing. */
  sequence: number;
  /** Header, body and padding, then maybe the payload. Dropped once the message is settled. */
  frame: Uint8Array[];
  sizeBytes: number;
  settled: boolean;
  resolve(): void;
  reject(error: Error): void;
}

export interface QueuedMessage {
  /** Resolves when the message is durable; rejects with the service's refusal, or when the client gives up. */
  acknowledged: Promise<void>;
}

/** How the queue goes on after a welcome. */
export interface Continuation {
  /** Messages that the service had acknowledged and has lost: possible only without full durability. */
  acknowledgedLost: number;
  /** Another instance has sent under this name since the last welcome. */
  isShared: boolean;
  /** The service has numbers of this instance that were never sent from here: another process has the same instance. Nothing is done then. */
  isForeign: boolean;
}

/**
 * What a producer keeps until it is acknowledged: messages under ascending sequence numbers, and up to where they have been written to the
 * present connection.
 */
export class UnacknowledgedQueue {
  #entries: Entry[] = [];
  /** Index of the oldest entry; those before it are settled and gone. */
  #head = 0;
  /** Index of the next entry to write to the present connection. */
  #cursor = 0;
  /** Number of the next message that is added. */
  #nextSequence = 1;
  /** The service has said where this producer stands. */
  #numbered = false;
  #highestSent = 0;
  /** The highest number that was answered with those before it. */
  #settledUpTo = 0;
  /** What the last welcome said. */
  #lastCommitted = 0;
  #unsettledBytes = 0;
  #unsettledCount = 0;

  get sizeBytes(): number {
    return this.#unsettledBytes;
  }

  get count(): number {
    return this.#unsettledCount;
  }

  /** Takes a message; the payload is referred to, not copied. Throws a RangeError when it does not fit a frame. */
  add(body: object, payload: Uint8Array | undefined): QueuedMessage {
    const sequence = this.#nextSequence;
    const frame = encodeFrame({ kind: "message", sequence, body, ...(payload && { payload }) });
    this.#nextSequence++;
    const sizeBytes = frame.reduce((sum, part) => sum + part.length, 0);
    const acknowledged = new Promise<void>((resolve, reject) => {
      this.#entries.push({ sequence, frame, sizeBytes, settled: false, resolve, reject });
    });
    // Whoever does not look at a message's promise learns of refusals elsewhere; it must not end the process.
    acknowledged.catch(() => {});
    this.#unsettledBytes += sizeBytes;
    this.#unsettledCount++;
    return { acknowledged };
  }

  /** Frame of the next unsettled message that this connection has not been given; undefined when there is none. */
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
    let low = this.#head;
    let high = this.#cursor;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#entries[middle] as Entry).sequence < sequence) low = middle + 1;
      else high = middle;
    }
    const entry = this.#entries[low];
    if (low < this.#cursor && entry?.sequence === sequence) this.#settle(entry)?.reject(error);
  }

  rejectAll(error: Error): void {
    for (const entry of this.#entries.slice(this.#head)) this.#settle(entry)?.reject(error);
  }

  /**
   * A new connection, whose welcome said `committed` and `yours`. All that is not settled is written again. What is at or below `yours` is
   * stored and could be forgotten; it keeps its number, because only its second answer tells whether it was refused. The rest gets
   * the numbers from `committed + 1` on: what it had may be another instance's by now.
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

  /** Marks as settled, once, and lets the bytes go; undefined when it was settled before. */
  #settle(entry: Entry): Entry | undefined {
    if (entry.settled) return undefined;
    entry.settled = true;
    entry.frame = [];
    this.#unsettledBytes -= entry.sizeBytes;
    this.#unsettledCount--;
    return entry;
  }
}
