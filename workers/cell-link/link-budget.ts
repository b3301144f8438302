/** Memory for a payload that is being read. */
export interface PayloadClaim {
  readonly bytes: number;
  /** False while the connection waits for room, its socket paused. */
  granted: boolean;
}

interface Waiting {
  claim: PayloadClaim;
  onGranted: () => void;
}

/**
 * Bytes that all connections together have taken and not yet committed, and the room for payloads being read. A connection that
 * begins a payload claims all of it first: payloads that are half read hold their memory until they are whole, and if each could
 * begin when there is some room left, all might wait for each other. Claims are granted in order, so that a
 * large one is not passed over for ever by small ones.
 */
export class LinkBudget {
  readonly #limitBytes: number;
  #usedBytes = 0;
  #waiting: Waiting[] = [];

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  get isFull(): boolean {
    return this.#usedBytes >= this.#limitBytes;
  }

  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** Bytes that are here already: they count, whether there is room or not. */
  add(bytes: number): void {
    this.#usedBytes += bytes;
  }

  release(bytes: number): void {
    this.#usedBytes -= bytes;
    this.#grant();
  }

  /** Claims room; when it is not granted at once, `onGranted` is called later. A claim of 0 waits for its turn only. */
  claim(bytes: number, onGranted: () => void): PayloadClaim {
    const claim: PayloadClaim = { bytes, granted: false };
    if (this.#waiting.length === 0 && this.#fits(bytes)) {
      claim.granted = true;
      this.#usedBytes += bytes;
    } else {
      this.#waiting.push({ claim, onGranted });
    }
    return claim;
  }

  /** Ends a claim: the payload is here (and counted by `add`), or its connection is gone. */
  end(claim: PayloadClaim): void {
    if (claim.granted) {
      this.release(claim.bytes);
      return;
    }
    this.#waiting = this.#waiting.filter((waiting) => waiting.claim !== claim);
    this.#grant();
  }

  /** A payload over the limit is let in alone. */
  #fits(bytes: number): boolean {
    return this.#usedBytes === 0 || (this.#usedBytes + bytes <= this.#limitBytes && !this.isFull);
  }

  #grant(): void {
    while (this.#waiting.length > 0) {
      const { claim, onGranted } = this.#waiting[0] as Waiting;
      if (!this.#fits(claim.bytes)) return;
      this.#waiting.shift();
      claim.granted = true;
      this.#usedBytes += claim.bytes;
      onGranted();
    }
  }
}
