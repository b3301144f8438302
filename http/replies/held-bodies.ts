import { errorReply } from "./error-reply.js";
import type { Reply } from "./reply.js";

/**
 * Answers wait in memory until their clients read them or disconnect. This is the limit for all of them: enough for some of the largest
 * documents, or a page of the largest list entries for each of a few clients.
 */
const DEFAULT_LIMIT_BYTES = 256 * 1024 * 1024;

/** Smaller answers, such as health and errors, are always sent. Ten thousand of them are acceptable. */
const ALWAYS_ADMITTED_BYTES = 16 * 1024;

/** When a refused client may ask again: clients that do read their answers are done by then. */
const RETRY_AFTER_SECONDS = 1;

/** Counts the memory of whole answers that wait for their clients. An answer that several clients wait for counts once. */
export class HeldBodies {
  readonly #limitBytes: number;
  readonly #holders = new Map<ArrayBufferLike, number>();
  #bytes = 0;

  constructor(limitBytes = DEFAULT_LIMIT_BYTES) {
    this.#limitBytes = limitBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether one more client may wait for this body. A body above the limit is admitted if it is the only one. */
  admits(body: Uint8Array): boolean {
    if (body.byteLength <= ALWAYS_ADMITTED_BYTES || this.#bytes === 0 || this.#holders.has(body.buffer)) return true;
    return this.#bytes + body.buffer.byteLength <= this.#limitBytes;
  }

  /** The reply, or a 503 if unread answers leave no memory for it. */
  admitOrRefuse(reply: Reply, traceId: string): Reply {
    if (!(reply.body instanceof Uint8Array) || this.admits(reply.body)) return reply;
    const message = "too many large answers are waiting for clients that do not read them";
    const params = { held_bytes: this.#bytes, retry_after_seconds: RETRY_AFTER_SECONDS };
    return errorReply({ code: "unavailable", message, params }, traceId);
  }

  hold(body: Uint8Array): void {
    const holders = this.#holders.get(body.buffer) ?? 0;
    if (holders === 0) this.#bytes += body.buffer.byteLength;
    this.#holders.set(body.buffer, holders + 1);
  }

  /** Call it once for each `hold`. */
  release(body: Uint8Array): void {
    const holders = this.#holders.get(body.buffer) ?? 0;
    if (holders > 1) {
      this.#holders.set(body.buffer, holders - 1);
      return;
    }
    this.#holders.delete(body.buffer);
    this.#bytes -= body.buffer.byteLength;
  }
}
