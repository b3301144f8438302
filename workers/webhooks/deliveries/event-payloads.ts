/** The bytes of an event. All its deliveries and both threads share them, and they are posted unchanged. */
export interface EventPayload {
  /** In shared memory, so that they are not copied for the dispatcher. */
  readonly bytes: Uint8Array;
  /** Number of deliveries that hold it. */
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
