import { LIMITS } from "../../../core/limits.js";

/** What is kept of a receiver's answer. It is bounded, and always text. */
export class ReceiverAnswer {
  statusCode: number | null = null;
  headers: Record<string, string> | null = null;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #isTruncated = false;

  /** @param raw names and values alternately, as they came */
  takeHeaders(statusCode: number, raw: readonly Uint8Array[]): void {
    this.statusCode = statusCode;
    // Without a prototype, since a receiver may use any header name.
    const headers: Record<string, string> = Object.create(null);
    let bytes = 0;
    for (let i = 0; i + 1 < raw.length; i += 2) {
      const [name, value] = [raw[i] as Uint8Array, raw[i + 1] as Uint8Array];
      bytes += name.length + value.length;
      if (bytes > LIMITS.answerHeaderBytes) {
        this.#isTruncated = true;
        break;
      }
      // The parser only accepts ASCII names.
      const key = keyOf(bufferOf(name).toString("latin1").toLowerCase());
      headers[key] = headers[key] === undefined ? textOf(value) : `${headers[key]}, ${textOf(value)}`;
    }
    this.headers = { ...headers };
  }

  /** @returns false if no more is kept */
  takeBody(chunk: Uint8Array): boolean {
    const room = LIMITS.answerBodyBytes - this.#bytes;
    if (chunk.length > room) this.#isTruncated = true;
    const kept = chunk.slice(0, room);
    this.#chunks.push(kept);
    this.#bytes += kept.length;
    return chunk.length <= room;
  }

  /** The body is incomplete. */
  truncate(): void {
    this.#isTruncated = true;
  }

  /** True if there was more than is kept, or the body is incomplete. */
  get isTruncated(): boolean {
    return this.#isTruncated;
  }

  /** Null before an answer came. */
  get body(): string | null {
    if (this.statusCode === null) return null;
    const [only] = this.#chunks;
    if (only === undefined) return "";
    const bytes = this.#chunks.length === 1 ? only : Buffer.concat(this.#chunks);
    // A character that was cut in two is left out.
    return this.#isTruncated
      ? new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes, { stream: true })
      : textOf(bytes);
  }
}

/** Renames a header `__proto__`: a record with this key could not be decoded again (core/json/non-json.ts). */
function keyOf(name: string): string {
  return name === "__proto__" ? "[__proto__]" : name;
}

/** Bytes that are not UTF-8 become replacement characters. */
function textOf(bytes: Uint8Array): string {
  return bufferOf(bytes).toString("utf8");
}

function bufferOf(bytes: Uint8Array): Buffer {
  return bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
