import { LIMITS } from "../../../core/limits.js";
import type { BufferPool } from "../../buffer-pool.js";
import type { LinkBudget, PayloadClaim, WaitingConnection } from "../bounds/link-budget.js";
import type { Frame } from "../frame-codec.js";
import type { SessionPauses } from "./session-pauses.js";
import type { TakenMessage } from "./taken-message.js";

export interface SessionMemoryOptions {
  budget: LinkBudget;
  buffers: BufferPool;
  pauses: SessionPauses;
  /** There is memory for the payload that was held back. */
  onPayloadRoom(): void;
}

/** The memory that one connection holds: messages that are not committed, and the payload that is being read. */
export class SessionMemory {
  readonly #options: SessionMemoryOptions;
  /** Bytes of messages that were taken and are not committed. */
  #pendingBytes = 0;
  #pendingCount = 0;
  /** The memory for the payload that is being read. */
  #claim: PayloadClaim | undefined;
  /** The seconds since the payload last got memory, and the bytes that had come by then. */
  #claimSeconds = 0;
  #claimedAtBytes = 0;
  /** Its place among the connections that wait while the link as a whole is full. */
  #waiting: WaitingConnection | undefined;

  constructor(options: SessionMemoryOptions) {
    this.#options = options;
  }

  /** Messages that were taken and are not committed. */
  get pendingCount(): number {
    return this.#pendingCount;
  }

  /** Counts a message that is taken. @returns its bytes, for `TakenMessage` */
  take({ body, payload }: Frame): number {
    const bytes = body.length + payload.length + LIMITS.linkMessageOverheadBytes;
    this.#pendingBytes += bytes;
    this.#pendingCount++;
    this.#options.budget.add(bytes);
    return bytes;
  }

  /** The message is committed, or was not taken after all. */
  release({ bytes, payload }: TakenMessage): void {
    const { budget, buffers } = this.#options;
    this.#pendingBytes -= bytes;
    this.#pendingCount--;
    buffers.release(payload);
    budget.release(bytes);
  }

  /** Takes memory for a payload, or more of it. @returns how large its buffer may be; `filledBytes` if it must wait */
  payloadRoom(lengthBytes: number, filledBytes: number): number {
    const { budget, onPayloadRoom } = this.#options;
    if (filledBytes < LIMITS.linkUnclaimedPayloadBytes) return Math.min(lengthBytes, LIMITS.linkUnclaimedPayloadBytes);
    this.#claim ??= budget.claim(onPayloadRoom);
    this.#claimSeconds = 0;
    this.#claimedAtBytes = filledBytes;
    return budget.grow(this.#claim, lengthBytes, filledBytes);
  }

  /**
   * Called once for each second in which the connection was read.
   *
   * @returns whether the payload that is being read holds memory that others wait for, and comes too slowly
   */
  isPayloadSlow(filledBytes: number): boolean {
    if (this.#claim === undefined) return false;
    const countedSeconds = ++this.#claimSeconds - LIMITS.linkSlowPayload.graceSeconds;
    const isSlow = filledBytes - this.#claimedAtBytes < countedSeconds * LIMITS.linkSlowPayload.bytesPerSecond;
    return isSlow && this.#options.budget.hasWaitingClaims;
  }

  /** The payload of the claim is whole. */
  endClaim(): void {
    const claim = this.#claim;
    this.#claim = undefined;
    if (claim !== undefined) this.#options.budget.end(claim);
  }

  /** Lets the connection read on if it waited for its own messages, and enough of them are committed. */
  resumeIfDrained(): void {
    if (this.#pendingBytes <= LIMITS.linkConnectionPendingBytes / 2) this.#options.pauses.resume("own messages");
  }

  /**
   * Pauses the connection when it holds too much. It is called after each chunk, so memory is bounded to what is
   * pending plus one chunk.
   */
  limit(isPayloadHeld: boolean): void {
    const { budget, pauses } = this.#options;
    // The payload being read does not count as pending: a message above the limit is let in alone.
    if (this.#pendingBytes > LIMITS.linkConnectionPendingBytes) pauses.pause("own messages");
    if (isPayloadHeld) pauses.pause((this.#claim?.wantedBytes ?? 0) > 0 ? "payload room" : "disk room");
    if (!budget.isFull || this.#waiting !== undefined) return;
    pauses.pause("all messages");
    this.#waiting = budget.waitForRoom(() => {
      this.#waiting = undefined;
      pauses.resume("all messages");
    });
  }

  /**
   * Nothing more is read. Gives up the claim and the place in the queue. Pending messages are still released by their
   * commits.
   */
  stop(): void {
    this.endClaim();
    if (this.#waiting !== undefined) this.#options.budget.cancelWait(this.#waiting);
    this.#waiting = undefined;
  }
}
