import type { Refusal } from "../../core/link/refusal.js";

/** How far a producer has come in its sequence, as the link needs to know it. */
export interface ProducerProgress {
  readonly name: string;
  /** Last sequence number that was taken: its record is committed or will be. */
  readonly taken: number;
  /** Last sequence number whose record is committed: what may be acknowledged. */
  readonly committed: number;
  /** The last sequence number taken from each instance that is remembered. */
  readonly instances: ReadonlyMap<string, number>;
  /** The stored refusals, by sequence number. */
  readonly refusals: ReadonlyMap<number, { readonly refusal: Refusal }>;
}

export interface IncomingMessage {
  producer: ProducerProgress;
  /** The producer's next sequence number: `producer.taken + 1`. */
  sequence: number;
  /** The queue that the message comes from, a canonical UUID; null if the connection named none. */
  instance: string | null;
  /** MessagePack; valid until `take` returns. */
  body: Uint8Array;
  /** Belongs to the recorder until it calls `onCommitted`. Nobody writes it meanwhile. */
  payload: Uint8Array;
  /**
   * Called when its record is committed, with the refusal or null. Calls come in the order of `take`, and never if the
   * log fails.
   */
  onCommitted(refusal: Refusal | null): void;
}

/** Takes the link's messages, and tells it about producers. */
export interface MessageIntake {
  /** Why the service takes no messages, as text for people; null while it takes them. */
  readonly unavailable: string | null;
  readonly serviceVersion: string;
  readonly lastRunId: string | null;
  /** The producer with this name; undefined if it is new and there are too many. */
  producer(name: string): ProducerProgress | undefined;
  /**
   * Decides a message and appends its record, or the record of its refusal. It is applied at once: the next message is decided with it.
   *
   * @throws {Error} The service has a problem of its own. Nothing of the message is applied, and its sequence number is not used.
   */
  take(message: IncomingMessage): void;
  /** A connection has said who it is. */
  connected(producer: ProducerProgress): void;
  /**
   * A connection is welcomed, and since this instance last sent, another instance of its name has sent or taken its
   * connection.
   */
  alternated(producer: ProducerProgress): void;
  /** The producer's connection has ended, and no other has replaced it. */
  disconnected(producer: ProducerProgress): void;
}
