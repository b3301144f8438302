import type { JsonObject, JsonValue } from "../../core/json/json.js";
import { SHORT_TEXT_BYTES, ShortTexts } from "../columns/short-texts.js";

const HIGH = 0x1_0000_0000;

const NO_BYTES = Buffer.alloc(0);

const keys = new ShortTexts("keys");
const values = new ShortTexts("values");

/**
 * What heads of MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md) say of values that JSON has. Who reads says what is
 * wrong, and what is to be looked at besides: what was written here is trusted, what comes from outside is not.
 */
export abstract class MessagePackReader {
  protected bytes: Buffer = NO_BYTES;
  /** Of the next byte. */
  protected at = 0;

  /** Whose bytes these are: they may be a part of much more, which stays in memory as long as they are held. */
  protected begin(bytes: Uint8Array): void {
    this.bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
  }

  protected letGo(): void {
    this.bytes = NO_BYTES;
  }

  /** More bytes are wanted than are left. */
  protected abstract failAtEnd(length: number): never;
  /** A type that JSON does not have. */
  protected abstract failOfType(head: number): never;
  protected abstract failOfKey(head: number): never;
  protected abstract readList(count: number): JsonValue[];
  protected abstract readMap(count: number): JsonObject;
  /** The text of the bytes from `start` to `at`. */
  protected abstract textFrom(start: number): string;
  protected abstract float(value: number): number;
  /** @param value nearest to an integer of 64 bits, which ends at `at` */
  protected abstract wideInteger(value: number, isSigned: boolean): number;

  protected readValue(): JsonValue {
    const { bytes } = this;
    const head = bytes[this.take(1)] as number;
    if (head <= 0x7f) return head;
    if (head >= 0xe0) return head - 0x100;
    if (head <= 0x8f) return this.readMap(head & 0x0f);
    if (head <= 0x9f) return this.readList(head & 0x0f);
    if (head <= 0xbf) return this.#readText(head & 0x1f, values);
    switch (head) {
      case 0xc0:
        return null;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xca:
        return this.float(bytes.readFloatBE(this.take(4)));
      case 0xcb:
        return this.float(bytes.readDoubleBE(this.take(8)));
      case 0xcc:
        return bytes[this.take(1)] as number;
      case 0xcd:
        return bytes.readUInt16BE(this.take(2));
      case 0xce:
        return bytes.readUInt32BE(this.take(4));
      case 0xcf: {
        const at = this.take(8);
        return this.wideInteger(bytes.readUInt32BE(at) * HIGH + bytes.readUInt32BE(at + 4), false);
      }
      case 0xd0:
        return bytes.readInt8(this.take(1));
      case 0xd1:
        return bytes.readInt16BE(this.take(2));
      case 0xd2:
        return bytes.readInt32BE(this.take(4));
      case 0xd3: {
        const at = this.take(8);
        return this.wideInteger(bytes.readInt32BE(at) * HIGH + bytes.readUInt32BE(at + 4), true);
      }
      case 0xd9:
      case 0xda:
      case 0xdb:
        return this.#readText(this.#textLength(head), values);
      case 0xdc:
        return this.readList(bytes.readUInt16BE(this.take(2)));
      case 0xdd:
        return this.readList(bytes.readUInt32BE(this.take(4)));
      case 0xde:
        return this.readMap(bytes.readUInt16BE(this.take(2)));
      case 0xdf:
        return this.readMap(bytes.readUInt32BE(this.take(4)));
      default:
        // 0xc1 is never used; 0xc4 to 0xc6 are bin; 0xc7 to 0xc9 and 0xd4 to 0xd8 are ext.
        return this.failOfType(head);
    }
  }

  protected readKey(): string {
    const head = this.bytes[this.take(1)] as number;
    if (head >= 0xa0 && head <= 0xbf) return this.#readText(head & 0x1f, keys);
    if (head < 0xd9 || head > 0xdb) this.failOfKey(head);
    return this.#readText(this.#textLength(head), keys);
  }

  /** Where the next so many bytes begin, which are taken. */
  protected take(length: number): number {
    const { at } = this;
    if (length > this.bytes.length - at) this.failAtEnd(length);
    this.at = at + length;
    return at;
  }

  #textLength(head: number): number {
    if (head === 0xd9) return this.bytes[this.take(1)] as number;
    return head === 0xda ? this.bytes.readUInt16BE(this.take(2)) : this.bytes.readUInt32BE(this.take(4));
  }

  #readText(lengthBytes: number, texts: ShortTexts): string {
    const start = this.take(lengthBytes);
    const known = lengthBytes <= SHORT_TEXT_BYTES ? texts.read(this.bytes, start, this.at) : undefined;
    return known ?? this.textFrom(start);
  }
}
