/**
 * Reads the body of a cell-link frame: MessagePack that holds a map of JSON values, and nothing else.
 *
 * The library's decoder trusts its input. It takes the memory that a list's head claims (5 bytes can ask for 8 MB, and
 * can nest). It makes texts of number keys, keeps one of two equal keys, rounds integers of 64 bits and repairs broken
 * UTF-8. Each of these would store something else than the producer sent. So this reader checks the heads of all values
 * before the library decodes them. A fault names its place.
 */
import { isUtf8 } from "node:buffer";
import type { JsonObject, JsonValue } from "../../core/json/json.js";
import { pointerPart } from "../../core/json/non-json.js";
import { LIMITS } from "../../core/limits.js";
import { decodeMessagePack } from "../../storage/records/message-pack.js";

export interface BodyFault {
  message: string;
  /** `path` is a JSON Pointer, empty for the body itself. */
  params: { path: string; value: JsonValue; allowed: string };
}

export type DecodedBody = { ok: true; body: JsonObject } | { ok: false; fault: BodyFault };

/** Decodes a whole body. Bytes after the map are a fault too. Never throws for what the bytes contain. */
export function decodeBody(bytes: Uint8Array): DecodedBody {
  try {
    new BodyCheck(bytes).body();
  } catch (error) {
    if (!(error instanceof BodyFaultError)) throw error;
    return { ok: false, fault: error.fault };
  }
  return { ok: true, body: decodeMessagePack(bytes) as JsonObject };
}

class BodyFaultError extends Error {
  readonly fault: BodyFault;

  constructor(fault: BodyFault) {
    super(fault.message);
    this.fault = fault;
  }
}

class BodyCheck {
  readonly #bytes: Buffer;
  /** Where the next byte is. */
  #at = 0;
  /** Keys and indexes that lead to the value that is being checked. A fault names them as its path. */
  readonly #path: (string | number)[] = [];

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  body(): void {
    const head = this.#bytes[0];
    if (head === undefined) this.#fail("an empty body", null, "a MessagePack map");
    if (!((head >= 0x80 && head <= 0x8f) || head === 0xde || head === 0xdf)) {
      this.#fail("a body that is not a map", head, "a MessagePack map");
    }
    this.#value();
    const left = this.#bytes.length - this.#at;
    if (left !== 0) this.#fail("bytes after the map", left, "nothing after the map");
  }

  #value(): void {
    const head = this.#head();
    if (head <= 0x7f || head >= 0xe0) return;
    if (head <= 0x8f) this.#map(head & 0x0f);
    else if (head <= 0x9f) this.#list(head & 0x0f);
    else if (head <= 0xbf) this.#text(head & 0x1f);
    else this.#longValue(head);
  }

  #longValue(head: number): void {
    switch (head) {
      case 0xc0:
      case 0xc2:
      case 0xc3:
        break;
      case 0xca:
        this.#float(this.#bytes.readFloatBE(this.#take(4)));
        break;
      case 0xcb:
        this.#float(this.#bytes.readDoubleBE(this.#take(8)));
        break;
      case 0xcc:
      case 0xcd:
      case 0xce:
        this.#take(1 << (head - 0xcc));
        break;
      case 0xd0:
      case 0xd1:
      case 0xd2:
        this.#take(1 << (head - 0xd0));
        break;
      case 0xcf:
        this.#integer(this.#bytes.readBigUInt64BE(this.#take(8)));
        break;
      case 0xd3:
        this.#integer(this.#bytes.readBigInt64BE(this.#take(8)));
        break;
      case 0xd9:
      case 0xda:
      case 0xdb:
        this.#text(this.#unsigned(1 << (head - 0xd9)));
        break;
      case 0xdc:
      case 0xdd:
        this.#list(this.#unsigned(2 << (head - 0xdc)));
        break;
      case 0xde:
      case 0xdf:
        this.#map(this.#unsigned(2 << (head - 0xde)));
        break;
      default:
        // 0xc1 is never used; 0xc4 to 0xc6 are bin; 0xc7 to 0xc9 and 0xd4 to 0xd8 are ext.
        this.#fail("a MessagePack type that JSON does not have", head, "JSON values only, no bin or ext");
    }
  }

  #float(value: number): void {
    if (!Number.isFinite(value)) this.#fail("a number that is not finite", String(value), "a finite number");
  }

  #integer(value: bigint): void {
    if (Number.isSafeInteger(Number(value))) return;
    const allowed = "an integer between -2^53 and 2^53";
    this.#fail("an integer that no JSON number holds exactly", String(value), allowed);
  }

  #list(count: number): void {
    const depth = this.#enter(count, 1);
    for (let nth = 0; nth < count; nth++) {
      this.#path[depth] = nth;
      this.#value();
    }
    this.#path.length = depth;
  }

  #map(count: number): void {
    const depth = this.#enter(count, 2);
    const keys = new Set<string>();
    for (let nth = 0; nth < count; nth++) {
      const key = this.#key();
      if (key === "__proto__") this.#fail("the key __proto__", key, "any other key");
      if (keys.has(key)) this.#fail("a key that occurs twice", key, "each key once");
      keys.add(key);
      this.#path[depth] = key;
      this.#value();
      this.#path.length = depth;
    }
  }

  #key(): string {
    const head = this.#head();
    if (head >= 0xa0 && head <= 0xbf) return this.#text(head & 0x1f);
    if (head < 0xd9 || head > 0xdb) this.#fail("a key that is not a string", head, "string keys");
    return this.#text(this.#unsigned(1 << (head - 0xd9)));
  }

  /** @returns how deep the list or map lies */
  #enter(count: number, bytesPerItem: number): number {
    const depth = this.#path.length;
    if (depth >= LIMITS.jsonDepth) {
      this.#fail("a value nested too deeply", "…", `at most ${LIMITS.jsonDepth} levels deep`);
    }
    const left = this.#bytes.length - this.#at;
    if (count * bytesPerItem > left) {
      this.#fail("a count that goes beyond the body", count, `at most what the ${left} bytes left can hold`);
    }
    return depth;
  }

  #text(lengthBytes: number): string {
    const start = this.#take(lengthBytes);
    const text = this.#bytes.toString("utf8", start, this.#at);
    // There are as many characters as bytes, and no replacement character. So the text is ASCII.
    if (text.length === lengthBytes && !text.includes("\ufffd")) return text;
    const slice = this.#bytes.subarray(start, this.#at);
    if (!isUtf8(slice)) this.#fail("text that is not UTF-8", slice.toString("latin1").slice(0, 64), "UTF-8");
    return text;
  }

  #head(): number {
    return this.#bytes[this.#take(1)] as number;
  }

  #unsigned(lengthBytes: number): number {
    return this.#bytes.readUIntBE(this.#take(lengthBytes), lengthBytes);
  }

  /** Skips this many bytes. Returns where they begin. */
  #take(lengthBytes: number): number {
    const at = this.#at;
    const left = this.#bytes.length - at;
    if (lengthBytes > left) {
      this.#fail("a value that goes beyond the body", lengthBytes, `at most the ${left} bytes left`);
    }
    this.#at = at + lengthBytes;
    return at;
  }

  #fail(what: string, value: JsonValue, allowed: string): never {
    const path = this.#path.map((part) => `/${pointerPart(String(part))}`).join("");
    const message = `${what}${path === "" ? "" : ` at ${path}`}; allowed: ${allowed}`;
    throw new BodyFaultError({ message, params: { path, value, allowed } });
  }
}
