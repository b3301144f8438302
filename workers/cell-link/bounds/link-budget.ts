/** Memory for a payload that is being read. */
export interface PayloadClaim {
  readonly bytes: number;
  /** False while the connection waits for room, its socket paused. */
  granted: boolean;
}

/** A connection that waits until there is room for messages. */
export interface WaitingConnection {
  readonly onRoom: () => void;
}

/**
 * Bounds the memory that all connections together hold. It has two parts that do not wait for each other:
 *
 * - Messages that were taken and are not committed yet. They drain by themselves. While there are too many, connections are paused, and
 *   go on in the order in which they began to wait.
 * - Payloads that are being read. Each claims all of its memory before it is read: if each began with some memory, all could wait for
 *   each other. Claims are granted in order, so that a large one is not passed over again and again.
 */
export class LinkBudget {
  readonly #pendingLimitBytes: number;
  readonly #claimLimitBytes: number;
  #pendingBytes = 0;
  #claimedBytes = 0;
  #waitingConnections: WaitingConnection[] = [];
  #waitingClaims: { claim: PayloadClaim; onGranted: () => void }[] = [];

  constructor(limits: { pendingLimitBytes: number; claimLimitBytes: number }) {
    this.#pendingLimitBytes = limits.pendingLimitBytes;
    this.#claimLimitBytes = limits.claimLimitBytes;
  }

  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** Bytes of the granted claims. */
  get claimedBytes(): number {
    return this.#claimedBytes;
  }

  /** Whether messages must wait. */
  get isFull(): boolean {
    return this.#pendingBytes >= this.#pendingLimitBytes;
  }

  get hasWaitingClaims(): boolean {
    return this.#waitingClaims.length > 0;
  }

  /** A message was taken. */
  add(bytes: number): void {
    this.#pendingBytes += bytes;
  }

  /** It is committed. */
  release(bytes: number): void {
    this.#pendingBytes -= bytes;
    // Each connection that goes on may fill what is left. The next one then waits on.
    while (!this.isFull) {
      const waiting = this.#waitingConnections.shift();
      if (waiting === undefined) return;
      waiting.onRoom();
    }
  }

  /** Calls back when there is room for messages again. */
  waitForRoom(onRoom: () => void): WaitingConnection {
    const waiting = { onRoom };
    this.#waitingConnections.push(waiting);
    return waiting;
  }

  cancelWait(waiting: WaitingConnection): void {
    this.#waitingConnections = this.#waitingConnections.filter((other) => other !== waiting);
  }

  /** Claims memory for a payload. If it is not granted at once, `onGranted` is called later. */
  claim(bytes: number, onGranted: () => void): PayloadClaim {
    const claim: PayloadClaim = { bytes, granted: false };
    if (this.#waitingClaims.length === 0 && this.#fits(bytes)) {
      claim.granted = true;
      this.#claimedBytes += bytes;
    } else {
      this.#waitingClaims.push({ claim, onGranted });
    }
    return claim;
  }

  /** Ends a claim: the payload is whole and its message is added, or its connection is gone. */
  end(claim: PayloadClaim): void {
    if (claim.granted) this.#claimedBytes -= claim.bytes;
    else this.#waitingClaims = this.#waitingClaims.filter((waiting) => waiting.claim !== claim);
    this.#grant();
  }

  /** A claim above the limit is granted if it is the only one. */
  #fits(bytes: number): boolean {
    return this.#claimedBytes === 0 || this.#claimedBytes + bytes <= this.#claimLimitBytes;
  }

  #grant(): void {
    for (;;) {
      const [next] = this.#waitingClaims;
      if (next === undefined || !this.#fits(next.claim.bytes)) return;
      this.#waitingClaims.shift();
      next.claim.granted = true;
      this.#claimedBytes += next.claim.bytes;
      next.onGranted();
    }
  }
}
