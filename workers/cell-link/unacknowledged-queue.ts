import { encodeFrame, renumberFrame } from "./frame-codec.js";

/** A message that the service has not answered yet; its bytes are kept for a resend. */
interface Entry {
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
export type Continuation =
  | { kind: "continued" }
  /** The service has lost messages that it had acknowledged: possible only without full durability. */
  | { kind: "acknowledged_lost"; count: number }
  /** The service has committed numbers under this name that were never sent from here. */
  | { kind: "foreign"; committed: number; highestSent: number };

/**
 * What a producer keeps until it is acknowledged: messages under consecutive sequence numbers, and up to where they have been
 * written to the present connection.
 */
export class UnacknowledgedQueue {
  #entries: Entry[] = [];
  /** Index of the oldest entry; those before it are settled and gone. */
  #head = 0;
  /** Sequence number of the entry at `#head`, once the service has said where this producer stands. */
  #headSequence = 1;
  #numbered = false;
  /** Index of the next entry to write to the present connection. */
  #cursor = 0;
  #highestSent = 0;
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
    const sequence = this.#headSequence + this.#entries.length - this.#head;
    const frame = encodeFrame({ kind: "message", sequence, body, ...(payload && { payload }) });
    const sizeBytes = frame.reduce((sum, part) => sum + part.length, 0);
    const acknowledged = new Promise<void>((resolve, reject) => {
      this.#entries.push({ frame, sizeBytes, settled: false, resolve, reject });
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
      const sequence = this.#headSequence + this.#cursor - this.#head;
      this.#cursor++;
      if (entry.settled) continue;
      this.#highestSent = Math.max(this.#highestSent, sequence);
      return entry.frame;
    }
    return undefined;
  }

  /** Everything up to `sequence` is durable. */
  acknowledge(sequence: number): void {
    while (this.#head < this.#cursor && this.#headSequence <= sequence) {
      this.#settle(this.#entries[this.#head] as Entry)?.resolve();
      this.#head++;
      this.#headSequence++;
    }
    if (this.#head > 1024 && this.#head > this.#entries.length / 2) {
      this.#entries = this.#entries.slice(this.#head);
      this.#cursor -= this.#head;
      this.#head = 0;
    }
  }

  refuse(sequence: number, error: Error): void {
    const index = this.#head + sequence - this.#headSequence;
    if (index < this.#head || index >= this.#cursor) return;
    this.#settle(this.#entries[index] as Entry)?.reject(error);
  }

  rejectAll(error: Error): void {
    for (const entry of this.#entries.slice(this.#head)) this.#settle(entry)?.reject(error);
  }

  /**
   * A new connection, whose welcome said `committed`. All that is not settled is written again, also what is at or below
   * `committed`: only its second answer tells whether it was refused.
   */
  continueAfter(committed: number): Continuation {
    const acknowledged = this.#headSequence - 1;
    this.#cursor = this.#head;
    if (!this.#numbered) {
      this.#numbered = true;
      this.#renumberFrom(committed + 1);
      this.#highestSent = committed;
      return { kind: "continued" };
    }
    if (committed > this.#highestSent) return { kind: "foreign", committed, highestSent: this.#highestSent };
    if (committed >= acknowledged) return { kind: "continued" };
    this.#entries = this.#entries.slice(this.#head).filter((entry) => !entry.settled);
    this.#head = 0;
    this.#cursor = 0;
    this.#renumberFrom(committed + 1);
    this.#highestSent = committed;
    return { kind: "acknowledged_lost", count: acknowledged - committed };
  }

  #renumberFrom(sequence: number): void {
    this.#headSequence = sequence;
    for (let i = this.#head; i < this.#entries.length; i++) {
      const [head] = (this.#entries[i] as Entry).frame;
      if (head !== undefined) renumberFrame(head, sequence + i - this.#head);
    }
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
