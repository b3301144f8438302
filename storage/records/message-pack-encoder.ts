import type { JsonValue } from "../../core/json/json.js";

/** Of a message's or record's usual size; it doubles from there. */
const INITIAL_BYTES = 4 * 1024;
/** A buffer that one value has made larger than this is given up with it: a run's end may take 16 MiB. */
const KEPT_BYTES = 1024 * 1024;
/** Up to here a loop over ASCII is faster than the call that writes any text. */
const SHORT_TEXT = 16;
const HIGH = 0x1_0000_0000;

/**
 * Encodes JSON values as MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md), each in its shortest form: byte for
 * byte what the library @msgpack/msgpack makes of them, which a test holds. Written for texts, of which messages and records mostly
 * are: the library measures each in one pass by hand and encodes it in another, 3.5 µs a kilobyte; here it is one call, 0.3 µs.
 */
export class MessagePackEncoder {
  readonly #omitsUndefined: boolean;
  #bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES);
  #view = new DataView(this.#bytes.buffer);
  #at = 0;

  /** @param options.omitsUndefined leaves out a property that is undefined; without it, it is null */
  constructor(options: { omitsUndefined?: boolean } = {}) {
    this.#omitsUndefined = options.omitsUndefined ?? false;
  }

  /** @throws TypeError for what JSON does not have */
  encode(value: unknown): Uint8Array {
    const shared = this.encodeShared(value);
    return Uint8Array.prototype.slice.call(shared);
  }

  /** As `encode`; the bytes are the encoder's, and good until its next call. */
  encodeShared(value: unknown): Uint8Array {
    if (this.#bytes.length > KEPT_BYTES) this.#resize(INITIAL_BYTES);
    this.#at = 0;
    this.#value(value as JsonValue | undefined);
    return this.#bytes.subarray(0, this.#at);
  }

  #value(value: JsonValue | undefined): void {
    switch (typeof value) {
      case "string":
        this.#text(value);
        return;
      case "number":
        this.#number(value);
        return;
      case "boolean":
        this.#byte(value ? 0xc3 : 0xc2);
        return;
      case "undefined":
        this.#byte(0xc0);
        return;
      case "object":
        if (value === null) this.#byte(0xc0);
        else if (Array.isArray(value)) this.#array(value);
        else this.#map(value);
        return;
      default:
        throw new TypeError(`a ${typeof value} is no JSON value`);
    }
  }

  #byte(byte: number): void {
    this.#reserve(1);
    this.#bytes[this.#at++] = byte;
  }

  #array(items: readonly JsonValue[]): void {
    this.#head(items.length, 0x90, 15, 0xdc);
    for (const item of items) this.#value(item);
  }

  #map(map: Readonly<Record<string, JsonValue | undefined>>): void {
    const prototype = Object.getPrototypeOf(map);
    if (prototype !== Object.prototype && prototype !== null) {
      throw new TypeError(`a ${map.constructor?.name} is no JSON value`);
    }
    const keys = Object.keys(map);
    let count = keys.length;
    if (this.#omitsUndefined) for (const key of keys) if (map[key] === undefined) count--;
    this.#head(count, 0x80, 15, 0xde);
    for (const key of keys) {
      const value = map[key];
      if (value === undefined && this.#omitsUndefined) continue;
      this.#text(key);
      this.#value(value);
    }
  }

  /** Of an array or a map: up to `largestFix` within the byte, then 16 bits behind `code`, then 32 behind the next code. */
  #head(count: number, fix: number, largestFix: number, code: number): void {
    this.#reserve(5);
    const bytes = this.#bytes;
    if (count <= largestFix) {
      bytes[this.#at++] = fix | count;
    } else if (count <= 0xffff) {
      bytes[this.#at] = code;
      this.#view.setUint16(this.#at + 1, count);
      this.#at += 3;
    } else {
      bytes[this.#at] = code + 1;
      this.#view.setUint32(this.#at + 1, count);
      this.#at += 5;
    }
  }

  #text(text: string): void {
    const { length } = text;
    // At most three bytes for each UTF-16 unit.
    this.#reserve(5 + 3 * length);
    if (length <= SHORT_TEXT && this.#shortAscii(text)) return;
    const bytes = this.#bytes;
    const at = this.#at;
    // Mostly ASCII: then the head has the length that the text's own would have.
    const guess = textHeadBytes(length);
    const written = bytes.write(text, at + guess, "utf8");
    const headBytes = textHeadBytes(written);
    if (headBytes !== guess) bytes.copyWithin(at + headBytes, at + guess, at + guess + written);
    switch (headBytes) {
      case 1:
        bytes[at] = 0xa0 | written;
        break;
      case 2:
        bytes[at] = 0xd9;
        bytes[at + 1] = written;
        break;
      case 3:
        bytes[at] = 0xda;
        this.#view.setUint16(at + 1, written);
        break;
      default:
        bytes[at] = 0xdb;
        this.#view.setUint32(at + 1, written);
    }
    this.#at = at + headBytes + written;
  }

  /** False, with nothing taken, for a text that is not ASCII. */
  #shortAscii(text: string): boolean {
    const bytes = this.#bytes;
    let at = this.#at;
    bytes[at++] = 0xa0 | text.length;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) return false;
      bytes[at++] = code;
    }
    this.#at = at;
    return true;
  }

  #number(value: number): void {
    this.#reserve(9);
    const bytes = this.#bytes;
    const view = this.#view;
    const at = this.#at;
    if (!Number.isSafeInteger(value)) {
      bytes[at] = 0xcb;
      view.setFloat64(at + 1, value);
      this.#at = at + 9;
    } else if (value >= 0) {
      if (value < 0x80) {
        bytes[at] = value;
        this.#at = at + 1;
      } else if (value < 0x100) {
        bytes[at] = 0xcc;
        bytes[at + 1] = value;
        this.#at = at + 2;
      } else if (value < 0x1_0000) {
        bytes[at] = 0xcd;
        view.setUint16(at + 1, value);
        this.#at = at + 3;
      } else if (value < HIGH) {
        bytes[at] = 0xce;
        view.setUint32(at + 1, value);
        this.#at = at + 5;
      } else {
        bytes[at] = 0xcf;
        this.#long(at + 1, value);
      }
    } else if (value >= -0x20) {
      bytes[at] = value;
      this.#at = at + 1;
    } else if (value >= -0x80) {
      bytes[at] = 0xd0;
      bytes[at + 1] = value;
      this.#at = at + 2;
    } else if (value >= -0x8000) {
      bytes[at] = 0xd1;
      view.setInt16(at + 1, value);
      this.#at = at + 3;
    } else if (value >= -0x8000_0000) {
      bytes[at] = 0xd2;
      view.setInt32(at + 1, value);
      this.#at = at + 5;
    } else {
      bytes[at] = 0xd3;
      this.#long(at + 1, value);
    }
  }

  /** Two's complement, high half first. */
  #long(at: number, value: number): void {
    this.#view.setInt32(at, Math.floor(value / HIGH));
    this.#view.setUint32(at + 4, value >>> 0);
    this.#at = at + 8;
  }

  #reserve(count: number): void {
    if (this.#at + count > this.#bytes.length) this.#resize(Math.max(2 * this.#bytes.length, this.#at + count));
  }

  #resize(sizeBytes: number): void {
    const bytes = Buffer.allocUnsafeSlow(sizeBytes);
    bytes.set(this.#bytes.subarray(0, Math.min(this.#at, sizeBytes)));
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer);
  }
}

function textHeadBytes(length: number): number {
  return length < 0x20 ? 1 : length < 0x100 ? 2 : length < 0x1_0000 ? 3 : 5;
}
