import { LIMITS } from "../../../core/limits.js";
import { isOutOfMemory } from "../../../storage/disk/file-system-error.js";

/** The bytes of events whose deliveries wait. The deliveries of one event share them, and so do both threads. */
export class EventPayloads {
  readonly #events = new Map<string, { bytes: Uint8Array; deliveries: number }>();
  #keptBytes = 0;

  get keptBytes(): number {
    return this.#keptBytes;
  }

  /** Keeps an event's payload, if there is room and memory, until so many deliveries have ended. What is not kept is read again. */
  keep(eventId: string, text: string, deliveries: number): void {
    const length = Buffer.byteLength(text);
    if (this.#keptBytes + length > LIMITS.keptPayloadBytes) return;
    try {
      this.#events.set(eventId, { bytes: payloadBytes(text), deliveries });
      this.#keptBytes += length;
    } catch (error) {
      if (!isOutOfMemory(error)) throw error;
    }
  }

  get(eventId: string): Uint8Array | null {
    return this.#events.get(eventId)?.bytes ?? null;
  }

  /** A delivery of the event has ended. */
  ended(eventId: string): void {
    const event = this.#events.get(eventId);
    if (event === undefined || --event.deliveries > 0) return;
    this.#events.delete(eventId);
    this.#keptBytes -= event.bytes.length;
  }
}

/** In shared memory, so that they are not copied for the dispatcher. They are posted unchanged. */
export function payloadBytes(text: string): Uint8Array {
  const bytes = new Uint8Array(new SharedArrayBuffer(Buffer.byteLength(text)));
  bytes.set(Buffer.from(text));
  return bytes;
}
