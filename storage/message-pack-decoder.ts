import { SHORT_TEXT_BYTES, ShortTexts } from "./short-texts.js";

const HIGH = 0x1_0000_0000;

const NO_BYTES = Buffer.alloc(0);

const keys = new ShortTexts("keys");
const values = new ShortTexts("values");

/**
 * Reads one MessagePack value that holds what JSON has, as `MessagePackEncoder` made it. Written for records: their keys, ids and types
 * repeat, and their other texts are long. Of a record with 1 KB of text it takes half of what the library @msgpack/msgpack took with the
 * look at what heads promise that it needs before (1.3 and 2.6 µs), of one of numbers as long. A test holds both to the same values.
 *
 * Nothing is allocated beyond what the bytes can hold: a list grows as its items are read.
 */
export class MessagePackDecoder {
  #bytes: Buffer = NO_BYTES;
  #at = 0;
  #depth = 0;

  /** @throws {RangeError} The bytes are not one value of that kind, to the last of them. */
  decode(bytes: Uint8Array): unknown {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#at = 0;
    this.#depth = 0;
    try {
      const value = this.#value();
      if (this.#at !== bytes.length) throw new RangeError(`${bytes.length - this.#at} bytes behind the value`);
      return value;
    } finally {
      // They may be a part of much more, which would stay in memory until the next call.
      this.#bytes = NO_BYTES;
    }
  }

  #value(): unknown {
    const bytes = this.#bytes;
    const head = bytes[this.#take(1)] as number;
    if (head <= 0x7f) return head;
    if (head >= 0xe0) return head - 0x100;
    if (head <= 0x8f) return this.#map(head & 0x0f);
    if (head <= 0x9f) return this.#list(head & 0x0f);
    if (head <= 0xbf) return this.#text(head & 0x1f, values);
    switch (head) {
      case 0xc0:
        return null;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xca:
        return bytes.readFloatBE(this.#take(4));
      case 0xcb:
        return bytes.readDoubleBE(this.#take(8));
      case 0xcc:
        return bytes[this.#take(1)];
      case 0xcd:
        return bytes.readUInt16BE(this.#take(2));
      case 0xce:
        return bytes.readUInt32BE(this.#take(4));
      case 0xcf: {
        const at = this.#take(8);
        return bytes.readUInt32BE(at) * HIGH + bytes.readUInt32BE(at + 4);
      }
      case 0xd0:
        return bytes.readInt8(this.#take(1));
      case 0xd1:
        return bytes.readInt16BE(this.#take(2));
      case 0xd2:
        return bytes.readInt32BE(this.#take(4));
      case 0xd3: {
        const at = this.#take(8);
        return bytes.readInt32BE(at) * HIGH + bytes.readUInt32BE(at + 4);
      }
      case 0xd9:
      case 0xda:
      case 0xdb:
        return this.#text(this.#textLength(head), values);
      case 0xdc:
        return this.#list(bytes.readUInt16BE(this.#take(2)));
      case 0xdd:
        return this.#list(bytes.readUInt32BE(this.#take(4)));
      case 0xde:
        return this.#map(bytes.readUInt16BE(this.#take(2)));
      case 0xdf:
        return this.#map(bytes.readUInt32BE(this.#take(4)));
      default:
        throw new RangeError(`a head of ${head}, which no JSON value has`);
    }
  }

  /** Where the next so many bytes begin, which are taken. */
  #take(length: number): number {
    const at = this.#at;
    if (length > this.#bytes.length - at) throw new RangeError("the bytes end within a value");
    this.#at = at + length;
    return at;
  }

  #textLength(head: number): number {
    if (head === 0xd9) return this.#bytes[this.#take(1)] as number;
    return head === 0xda ? this.#bytes.readUInt16BE(this.#take(2)) : this.#bytes.readUInt32BE(this.#take(4));
  }

  #text(lengthBytes: number, texts: ShortTexts): string {
    const start = this.#take(lengthBytes);
    const known = lengthBytes <= SHORT_TEXT_BYTES ? texts.read(this.#bytes, start, this.#at) : undefined;
    return known ?? this.#bytes.toString("utf8", start, this.#at);
  }

  /** Each item takes a byte at least, each entry of a map two. */
  #enter(bytesAtLeast: number): void {
    if (bytesAtLeast > this.#bytes.length - this.#at) throw new RangeError("a head promises more than the bytes hold");
    if (++this.#depth > DEPTH_LIMIT) throw new RangeError(`a value nested more than ${DEPTH_LIMIT} levels deep`);
  }

  #list(count: number): unknown[] {
    this.#enter(count);
    const items: unknown[] = [];
    for (let nth = 0; nth < count; nth++) items.push(this.#value());
    this.#depth--;
    return items;
  }

  #map(count: number): Record<string, unknown> {
    this.#enter(2 * count);
    const map: Record<string, unknown> = {};
    for (let nth = 0; nth < count; nth++) {
      const key = this.#key();
      if (key === "__proto__") throw new RangeError("the key __proto__");
      map[key] = this.#value();
    }
    this.#depth--;
    return map;
  }

  #key(): string {
    const head = this.#bytes[this.#take(1)] as number;
    if (head >= 0xa0 && head <= 0xbf) return this.#text(head & 0x1f, keys);
    if (head < 0xd9 || head > 0xdb) throw new RangeError(`a key with a head of ${head}, which is none of a text`);
    return this.#text(this.#textLength(head), keys);
  }
}

/** What is written nests some fifty levels at most (`LIMITS.jsonDepth` within a message within a record); the stack ends far beyond this. */
const DEPTH_LIMIT = 1_000;
