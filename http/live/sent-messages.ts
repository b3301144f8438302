/**
 * The large messages that are being sent. Many clients may share one. A message cannot be broken off, so a client that reads slowly keeps
 * a state that is long outdated. When all such states together are too large, the clients of the oldest ones must go.
 */
export class SentMessages {
  readonly #limitBytes: number;
  /** What ends the clients of each message, the oldest message first. */
  readonly #ends = new Map<Uint8Array, Set<() => void>>();
  #bytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** @param end called if the client must go; it must call `remove` */
  add(message: Uint8Array, end: () => void): void {
    const ends = this.#ends.get(message);
    if (ends !== undefined) {
      ends.add(end);
      return;
    }
    this.#ends.set(message, new Set([end]));
    this.#bytes += message.byteLength;
    for (const [oldest, others] of this.#ends) {
      if (this.#bytes <= this.#limitBytes || oldest === message) return;
      for (const endOther of [...others]) endOther();
    }
  }

  remove(message: Uint8Array, end: () => void): void {
    const ends = this.#ends.get(message);
    if (ends === undefined || !ends.delete(end) || ends.size > 0) return;
    this.#ends.delete(message);
    this.#bytes -= message.byteLength;
  }
}
