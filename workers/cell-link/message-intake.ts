import type { Refusal } from "../../core/link/refusal.js";

/** A producer's place in its sequence, as the link needs it. */
export interface ProducerProgress {
  readonly name: string;
  /** Last number that was taken: its record is committed or on its way. */
  readonly taken: number;
  /** Last number whose record is committed: what may be acknowledged. */
  readonly committed: number;
  /** The last number that was taken of each of its newest instances. */
  readonly instances: ReadonlyMap<string, number>;
  /** The stored refusals, by number. */
  readonly refusals: ReadonlyMap<number, { readonly refusal: Refusal }>;
}

export interface IncomingMessage {
  producer: ProducerProgress;
  /** The producer's next: `producer.taken + 1`. */
  sequence: number;
  /** The queue that it comes from, a canonical UUID; null where the connection named none. */
  instance: string | null;
  /** MessagePack; valid until `take` returns. */
  body: Uint8Array;
  /** The recorder's until it calls `onCommitted`; nobody writes it meanwhile. */
  payload: Uint8Array;
  /** Its record is committed: as a change (null) or as a refusal. Called in the order of `take`; never when the log fails. */
  onCommitted(refusal: Refusal | null): void;
}

/** Where the link's messages go. */
export interface MessageIntake {
  /** Why the service takes no messages, for people; null while it does. */
  readonly unavailable: string | null;
  readonly serviceVersion: string;
  readonly lastRunId: string | null;
  /** The producer of this name; undefined when it is new and there are too many already. */
  producer(name: string): ProducerProgress | undefined;
  /**
   * Decides a message and appends its record, or that of its refusal. Applied at once: the next message is decided with it.
   *
   * @throws {Error} Trouble of the service's own; nothing of the message is applied and its number is not used.
   */
  take(message: IncomingMessage): void;
  /** A connection has said who it is. */
  connected(producer: ProducerProgress): void;
  /** An instance is back, and another of its name has sent since this one did, or had taken its connection. */
  alternated(producer: ProducerProgress): void;
  /** Its connection has ended, and no other has taken over. */
  disconnected(producer: ProducerProgress): void;
}
