/**
 * Reads the body of a cell-link frame: MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md) that holds a map of
 * JSON values, and nothing else.
 *
 * The library's decoder is for trusted input: it allocates what an array's head claims (5 bytes ask for 8 MB, and nest),
 * turns number keys into text, keeps one of two equal keys, rounds 64-bit integers and mends broken UTF-8. Each of those
 * would store something other than what the producer said, so here each is a fault that names its place.
 */
import { isUtf8 } from "node:buffer";
import type { JsonObject, JsonValue } from "../../core/json.js";
import { LIMITS } from "../../core/limits.js";
import { SHORT_TEXT_BYTES, ShortTexts } from "../../storage/short-texts.js";

/** A free-form value may stand some levels within its message (`check.metadata.x`). */
const DEPTH_LIMIT = LIMITS.jsonDepth + 8;

const keys = new ShortTexts("keys");
const values = new ShortTexts("values");

export interface BodyFault {
  message: string;
  /** `path` is a JSON Pointer, empty for the body itself. */
  params: { path: string; value: JsonValue; allowed: string };
}

/** `depth`: of the deepest map or list in the body, which is itself at 0. */
export type DecodedBody = { ok: true; body: JsonObject; depth: number } | { ok: false; fault: BodyFault };

/** Decodes a body whole: bytes behind the map are a fault too. Never throws on what the bytes say. */
export function decodeBody(bytes: Uint8Array): DecodedBody {
  const reader = new Reader(bytes);
  try {
    const body = reader.readBody();
    return { ok: true, body, depth: reader.depth };
  } catch (error) {
    if (!(error instanceof BodyFaultError)) throw error;
    return { ok: false, fault: error.fault };
  }
}

class BodyFaultError extends Error {
  readonly fault: BodyFault;

  constructor(fault: BodyFault) {
    super(fault.message);
    this.fault = fault;
  }
}

class Reader {
  readonly #bytes: Buffer;
  #offset = 0;
  /** Keys and indexes that lead to the value being read: what a fault calls its path. */
  readonly #path: (string | number)[] = [];
  #depth = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get depth(): number {
    return this.#depth;
  }

  readBody(): JsonObject {
    const head = this.#bytes[0];
    if (head === undefined) this.#fail("an empty body", null, "a MessagePack map");
    if (!((head >= 0x80 && head <= 0x8f) || head === 0xde || head === 0xdf)) {
      this.#fail("a body that is not a map", head, "a MessagePack map");
    }
    const body = this.#readValue() as JsonObject;
    if (this.#offset !== this.#bytes.length) {
      this.#fail("bytes behind the map", this.#bytes.length - this.#offset, "nothing behind the map");
    }
    return body;
  }

  #fail(what: string, value: JsonValue, allowed: string): never {
    let path = "";
    for (const part of this.#path) path += `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`;
    const params = { path, value, allowed };
    throw new BodyFaultError({ message: `${what}${path === "" ? "" : ` at ${path}`}: allowed is ${allowed}`, params });
  }

  /** Offset of the next `length` bytes, which are taken. */
  #take(length: number): number {
    const offset = this.#offset;
    if (length > this.#bytes.length - offset) {
      this.#fail("a value that goes beyond the body", length, `at most the ${this.#bytes.length - offset} bytes left`);
    }
    this.#offset = offset + length;
    return offset;
  }

  #readValue(): JsonValue {
    const bytes = this.#bytes;
    const head = bytes[this.#take(1)] as number;
    if (head <= 0x7f) return head;
    if (head >= 0xe0) return head - 0x100;
    if (head <= 0x8f) return this.#readMap(head & 0x0f);
    if (head <= 0x9f) return this.#readArray(head & 0x0f);
    if (head <= 0xbf) return this.#readString(head & 0x1f, values);
    switch (head) {
      case 0xc0:
        return null;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xca:
        return this.#finite(bytes.readFloatBE(this.#take(4)));
      case 0xcb:
        return this.#finite(bytes.readDoubleBE(this.#take(8)));
      case 0xcc:
        return bytes.readUInt8(this.#take(1));
      case 0xcd:
        return bytes.readUInt16BE(this.#take(2));
      case 0xce:
        return bytes.readUInt32BE(this.#take(4));
      case 0xcf:
        return this.#exact(bytes.readBigUInt64BE(this.#take(8)));
      case 0xd0:
        return bytes.readInt8(this.#take(1));
      case 0xd1:
        return bytes.readInt16BE(this.#take(2));
      case 0xd2:
        return bytes.readInt32BE(this.#take(4));
      case 0xd3:
        return this.#exact(bytes.readBigInt64BE(this.#take(8)));
      case 0xd9:
        return this.#readString(bytes.readUInt8(this.#take(1)), values);
      case 0xda:
        return this.#readString(bytes.readUInt16BE(this.#take(2)), values);
      case 0xdb:
        return this.#readString(bytes.readUInt32BE(this.#take(4)), values);
      case 0xdc:
        return this.#readArray(bytes.readUInt16BE(this.#take(2)));
      case 0xdd:
        return this.#readArray(bytes.readUInt32BE(this.#take(4)));
      case 0xde:
        return this.#readMap(bytes.readUInt16BE(this.#take(2)));
      case 0xdf:
        return this.#readMap(bytes.readUInt32BE(this.#take(4)));
      default:
        // 0xc1 is never used; 0xc4 to 0xc6 are bin; 0xc7 to 0xc9 and 0xd4 to 0xd8 are ext.
        return this.#fail("a MessagePack type that JSON does not have", head, "JSON values only, no bin or ext");
    }
  }

  #finite(value: number): number {
    if (!Number.isFinite(value)) this.#fail("a number that is not finite", String(value), "a finite number");
    return value;
  }

  #exact(value: bigint): number {
    const number = Number(value);
    if (!Number.isSafeInteger(number)) {
      this.#fail("an integer that no JSON number holds exactly", String(value), "an integer between -2^53 and 2^53");
    }
    return number;
  }

  #readString(lengthBytes: number, texts: ShortTexts): string {
    const start = this.#take(lengthBytes);
    const known = lengthBytes <= SHORT_TEXT_BYTES ? texts.read(this.#bytes, start, this.#offset) : undefined;
    if (known !== undefined) return known;
    const text = this.#bytes.toString("utf8", start, this.#offset);
    // As many characters as bytes, and none in place of a broken one: all are ASCII.
    if (text.length === lengthBytes && !text.includes("\ufffd")) return text;
    const slice = this.#bytes.subarray(start, this.#offset);
    if (!isUtf8(slice)) this.#fail("text that is not UTF-8", slice.toString("latin1").slice(0, 64), "UTF-8");
    return text;
  }

  #enter(count: number, bytesPerItem: number): void {
    const depth = this.#path.length;
    if (depth >= DEPTH_LIMIT) this.#fail("a value nested too deeply", depth, `at most ${DEPTH_LIMIT} levels`);
    if (depth > this.#depth) this.#depth = depth;
    const left = this.#bytes.length - this.#offset;
    if (count * bytesPerItem > left) {
      this.#fail("a count that goes beyond the body", count, `at most what the ${left} bytes left can hold`);
    }
  }

  #readArray(count: number): JsonValue[] {
    this.#enter(count, 1);
    const items: JsonValue[] = [];
    const depth = this.#path.length;
    for (let i = 0; i < count; i++) {
      this.#path[depth] = i;
      items.push(this.#readValue());
    }
    this.#path.length = depth;
    return items;
  }

  #readMap(count: number): JsonObject {
    this.#enter(count, 2);
    const map: JsonObject = {};
    const depth = this.#path.length;
    for (let i = 0; i < count; i++) {
      const key = this.#readKey();
      if (key === "__proto__") this.#fail("the key __proto__", key, "any other key");
      if (Object.hasOwn(map, key)) this.#fail("a key that stands twice", key, "each key once");
      this.#path[depth] = key;
      map[key] = this.#readValue();
      this.#path.length = depth;
    }
    return map;
  }

  #readKey(): string {
    const head = this.#bytes[this.#offset];
    if (head !== undefined && head >= 0xa0 && head <= 0xbf) {
      this.#offset++;
      return this.#readString(head & 0x1f, keys);
    }
    const isString = head === 0xd9 || head === 0xda || head === 0xdb;
    if (head !== undefined && !isString) this.#fail("a key that is not a string", head, "string keys");
    return this.#readValue() as string;
  }
}
