import type { Refusal } from "../../../core/link/refusal.js";
import type { Frame } from "../frame-codec.js";
import type { IncomingMessage, ProducerProgress } from "../message-intake.js";

/** A message that was taken and is not committed yet. */
export class TakenMessage implements IncomingMessage {
  readonly producer: ProducerProgress;
  readonly sequence: number;
  readonly instance: string | null;
  readonly body: Uint8Array;
  readonly payload: Uint8Array;
  /** The memory that is counted for it. */
  readonly bytes: number;
  readonly #settle: (message: TakenMessage, refusal: Refusal | null) => void;

  constructor(
    producer: ProducerProgress,
    { sequence, body, payload }: Frame,
    instance: string | null,
    bytes: number,
    settle: (message: TakenMessage, refusal: Refusal | null) => void,
  ) {
    this.producer = producer;
    this.sequence = sequence;
    this.instance = instance;
    this.body = body;
    this.payload = payload;
    this.bytes = bytes;
    this.#settle = settle;
  }

  onCommitted(refusal: Refusal | null): void {
    this.#settle(this, refusal);
  }
}
