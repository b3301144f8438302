/** The bytes of an event, posted as they are: once for all of its deliveries, and for both threads. */
export interface EventPayload {
  /** In shared memory: what goes to the dispatcher is no copy. */
  readonly bytes: Uint8Array;
  /** Deliveries that hold it. */
  users: number;
}

export function eventPayload(text: string): EventPayload {
  const bytes = new Uint8Array(new SharedArrayBuffer(Buffer.byteLength(text)));
  bytes.set(Buffer.from(text));
  return { bytes, users: 0 };
}

/** Counts the bytes of the payloads that deliveries hold. */
export class EventPayloads {
  #keptBytes = 0;

  get keptBytes(): number {
    return this.#keptBytes;
  }

  hold(payload: EventPayload): void {
    if (payload.users++ === 0) this.#keptBytes += payload.bytes.length;
  }

  release(payload: EventPayload): void {
    if (--payload.users === 0) this.#keptBytes -= payload.bytes.length;
  }
}
