/** Memory for a payload that is being read. */
export interface PayloadClaim {
  /** Bytes that the payload has. */
  bytes: number;
  /** Bytes that the payload waits for, while its socket is paused; 0 while it does not wait. */
  wantedBytes: number;
  readonly onRoom: () => void;
}

/** A connection that waits until there is room for messages. */
export interface WaitingConnection {
  readonly onRoom: () => void;
}

/**
 * Bounds the memory that all connections together hold. It has two parts that do not wait for each other:
 *
 * - Messages that were taken and are not committed yet. They drain by themselves. While there are too many, connections
 *   are paused, and go on in the order in which they began to wait.
 * - Payloads that are being read. The oldest claim gets all of its memory at once, from a half of the limit that
 *   belongs to it alone. So one can always go on, and all of them do in the end. The others share the second half, and
 *   each gets twice what it has filled. So a payload that is announced and does not come holds little.
 */
export class LinkBudget {
  readonly #pendingLimitBytes: number;
  readonly #claimLimitBytes: number;
  #pendingBytes = 0;
  #claimedBytes = 0;
  #waitingConnections: WaitingConnection[] = [];
  /** Oldest first. */
  readonly #claims = new Set<PayloadClaim>();

  constructor(limits: { pendingLimitBytes: number; claimLimitBytes: number }) {
    this.#pendingLimitBytes = limits.pendingLimitBytes;
    this.#claimLimitBytes = limits.claimLimitBytes;
  }

  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** Bytes of all claims. */
  get claimedBytes(): number {
    return this.#claimedBytes;
  }

  /** Whether messages must wait. */
  get isFull(): boolean {
    return this.#pendingBytes >= this.#pendingLimitBytes;
  }

  get hasWaitingClaims(): boolean {
    for (const { wantedBytes } of this.#claims) if (wantedBytes > 0) return true;
    return false;
  }

  /** A message was taken. */
  add(bytes: number): void {
    this.#pendingBytes += bytes;
  }

  /** The message is committed. */
  release(bytes: number): void {
    this.#pendingBytes -= bytes;
    // Each connection that goes on may use up what is left. Then the next one goes on waiting.
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

  /**
   * Begins a claim, which has no memory yet.
   *
   * @param onRoom called when there is room for what it waits for: it then asks again
   */
  claim(onRoom: () => void): PayloadClaim {
    const claim = { bytes: 0, wantedBytes: 0, onRoom };
    this.#claims.add(claim);
    return claim;
  }

  /**
   * Asks for memory for a payload of which `filledBytes` have come.
   *
   * @returns how large its buffer may be; `filledBytes` if it must wait
   */
  grow(claim: PayloadClaim, lengthBytes: number, filledBytes: number): number {
    const bytes = claim === this.#oldest ? lengthBytes : Math.min(lengthBytes, 2 * filledBytes);
    if (!this.#fits(claim, bytes)) {
      claim.wantedBytes = bytes;
      return filledBytes;
    }
    this.#claimedBytes += bytes - claim.bytes;
    claim.bytes = bytes;
    claim.wantedBytes = 0;
    return bytes;
  }

  /** Ends a claim: the payload is whole and its message is added, or its connection is gone. */
  end(claim: PayloadClaim): void {
    this.#claims.delete(claim);
    this.#claimedBytes -= claim.bytes;
    for (const waiting of this.#claims) {
      if (waiting.wantedBytes > 0 && this.#fits(waiting, waiting.wantedBytes)) waiting.onRoom();
    }
  }

  get #oldest(): PayloadClaim | undefined {
    return this.#claims.values().next().value;
  }

  #fits(claim: PayloadClaim, bytes: number): boolean {
    const oldest = this.#oldest;
    if (oldest === undefined || claim === oldest) return true;
    return this.#claimedBytes - oldest.bytes - claim.bytes + bytes <= this.#claimLimitBytes / 2;
  }
}
