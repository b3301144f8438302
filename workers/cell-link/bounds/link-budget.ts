/** Memory for a payload that is being read. */
export interface PayloadClaim {
  readonly bytes: number;
  /** False while the connection waits for room, its socket paused. */
  granted: boolean;
}

/** A connection's place among those that wait until there is room for messages. */
export interface Turn {
  readonly onTurn: () => void;
}

/**
 * The bounds on what all connections together hold, in two parts that do not wait for each other:
 *
 * - Messages that were taken and are not committed yet. They drain by themselves; while there are too many, connections are paused,
 *   and go on in the order in which they came to wait.
 * - Payloads that are being read. Each claims all of its room first: half-read ones hold their memory until they are whole, and if
 *   each could begin when there is some room left, all might wait for each other. Claims are granted in order, so that
 *   a large one is not passed over for ever.
 */
export class LinkBudget {
  readonly #pendingLimitBytes: number;
  readonly #claimLimitBytes: number;
  #pendingBytes = 0;
  #claimedBytes = 0;
  #turns: Turn[] = [];
  #waitingClaims: { claim: PayloadClaim; onGranted: () => void }[] = [];

  constructor(limits: { pendingLimitBytes: number; claimLimitBytes: number }) {
    this.#pendingLimitBytes = limits.pendingLimitBytes;
    this.#claimLimitBytes = limits.claimLimitBytes;
  }

  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** Of the granted claims. */
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
    // One that goes on may fill what is left: the next one then waits on.
    while (!this.isFull) {
      const turn = this.#turns.shift();
      if (turn === undefined) return;
      turn.onTurn();
    }
  }

  /** Calls back when there is room for messages again. */
  waitForTurn(onTurn: () => void): Turn {
    const turn = { onTurn };
    this.#turns.push(turn);
    return turn;
  }

  cancelTurn(turn: Turn): void {
    this.#turns = this.#turns.filter((other) => other !== turn);
  }

  /** Claims room for a payload; when it is not granted at once, `onGranted` is called later. */
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

  /** Ends a claim: the payload is whole (its message is added), or its connection is gone. */
  end(claim: PayloadClaim): void {
    if (claim.granted) this.#claimedBytes -= claim.bytes;
    else this.#waitingClaims = this.#waitingClaims.filter((waiting) => waiting.claim !== claim);
    this.#grant();
  }

  /** One over the limit is let in alone. */
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
