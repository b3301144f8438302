import { errorReply } from "./error-reply.js";
import type { Reply } from "./reply.js";

/**
 * Answers of clients that do not read them are held until they are taken or the connection ends. Together they may have this: some
 * of the largest documents, or a full page of the largest list entries for each of a few clients.
 */
const DEFAULT_LIMIT_BYTES = 256 * 1024 * 1024;

/** Smaller answers always go out: health and errors among them. Ten thousand of them are within reason. */
const ALWAYS_ADMITTED_BYTES = 16 * 1024;

/** When a refused client may ask again: clients that read have taken theirs by then. */
const RETRY_AFTER_SECONDS = 1;

/** Counts the memory of whole answers that wait for their clients; one that several clients wait for counts once. */
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

  /** Whether one more client may be made to wait for this body; a body over the limit is let in alone. */
  admits(body: Uint8Array): boolean {
    if (body.byteLength <= ALWAYS_ADMITTED_BYTES || this.#bytes === 0 || this.#holders.has(body.buffer)) return true;
    return this.#bytes + body.buffer.byteLength <= this.#limitBytes;
  }

  /** The reply, or a refusal in its place while the bodies that clients do not read leave no room for another one. */
  admitOrRefuse(reply: Reply, traceId: string): Reply {
    if (!(reply.body instanceof Uint8Array) || this.admits(reply.body)) return reply;
    const message = "too many large answers wait for clients that do not read them";
    const params = { held_bytes: this.#bytes, retry_after_seconds: RETRY_AFTER_SECONDS };
    return errorReply({ code: "unavailable", message, params }, traceId);
  }

  hold(body: Uint8Array): void {
    const holders = this.#holders.get(body.buffer) ?? 0;
    if (holders === 0) this.#bytes += body.buffer.byteLength;
    this.#holders.set(body.buffer, holders + 1);
  }

  /** Once for each `hold`. */
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
