import type { Defect, QualityCheck } from "../../core/run/quality.js";
import { decodeMessagePack, encodeMessagePack } from "../records/message-pack.js";
import { RecordDecodeError } from "../records/record-decode-error.js";

const KEYS = (["checks", "defects"] as const).map((key) => ({ key, bytes: encodeMessagePack(key) }));

/** Checks and defects of a run. */
export interface RunFindings {
  checks: QualityCheck[];
  defects: Defect[];
}

/**
 * The checks and defects in the body of a run's end (change-record.ts). The rest of the document, which is most of it, is
 * passed over and not decoded: an index of millions of runs is made from it.
 *
 * @throws RecordDecodeError for a body that `encodeChanges` cannot have made
 */
export function runFindings(body: Uint8Array): RunFindings {
  const found: RunFindings = { checks: [], defects: [] };
  const walk = new Walk(body);
  try {
    // The events come first.
    walk.skip();
    for (let left = walk.mapSize(); left > 0; left--) {
      const key = KEYS.find(({ bytes }) => walk.isNext(bytes))?.key;
      walk.skip();
      if (key === undefined) walk.skip();
      else found[key] = walk.value() as never;
    }
  } catch (error) {
    throw new RecordDecodeError(`the body is not MessagePack: ${String(error)}`);
  }
  if (Array.isArray(found.checks) && Array.isArray(found.defects)) return found;
  throw new RecordDecodeError("checks or defects that are no list");
}

/** Goes through MessagePack value by value (https://github.com/msgpack/msgpack/blob/master/spec.md). */
class Walk {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Decodes the next value. */
  value(): unknown {
    const start = this.#at;
    this.skip();
    return decodeMessagePack(this.#bytes.subarray(start, this.#at));
  }

  /** Whether these bytes come next. */
  isNext(bytes: Uint8Array): boolean {
    return bytes.every((byte, at) => this.#bytes[this.#at + at] === byte);
  }

  /** Passes the head of a map; returns its count of entries. */
  mapSize(): number {
    const type = this.#view.getUint8(this.#at++);
    if ((type & 0xf0) === 0x80) return type & 15;
    if (type === 0xde) return this.#take(2);
    if (type === 0xdf) return this.#take(4);
    throw new Error("no map");
  }

  /** Passes the next value, with all that is in it. */
  skip(): void {
    for (let values = 1; values > 0; values--) values += this.#skipHead();
    if (this.#at > this.#bytes.length) throw new Error("it ends within a value");
  }

  /** Passes a value without those in it; returns their count. */
  #skipHead(): number {
    const type = this.#view.getUint8(this.#at++);
    if (type < 0x80 || type >= 0xe0) return 0;
    if (type < 0x90) return 2 * (type & 15);
    if (type < 0xa0) return type & 15;
    if (type < 0xc0) return this.#pass(type & 31);
    switch (type) {
      case 0xc4:
      case 0xd9:
        return this.#pass(this.#take(1));
      case 0xc5:
      case 0xda:
        return this.#pass(this.#take(2));
      case 0xc6:
      case 0xdb:
        return this.#pass(this.#take(4));
      case 0xdc:
        return this.#take(2);
      case 0xdd:
        return this.#take(4);
      case 0xde:
        return 2 * this.#take(2);
      case 0xdf:
        return 2 * this.#take(4);
      default:
        return this.#pass(FIXED_BYTES[type] ?? unknown(type));
    }
  }

  #pass(bytes: number): 0 {
    this.#at += bytes;
    return 0;
  }

  /** An unsigned integer of so many bytes, big-endian. */
  #take(bytes: 1 | 2 | 4): number {
    const at = this.#at;
    this.#at += bytes;
    if (bytes === 1) return this.#view.getUint8(at);
    return bytes === 2 ? this.#view.getUint16(at) : this.#view.getUint32(at);
  }
}

/** Bytes after the type, of types with a fixed size: null, booleans, floats, integers. The log has no extension types. */
const FIXED_BYTES: Readonly<Record<number, number>> = {
  ...{ 192: 0, 194: 0, 195: 0, 202: 4, 203: 8 },
  ...{ 204: 1, 205: 2, 206: 4, 207: 8, 208: 1, 209: 2, 210: 4, 211: 8 },
};

function unknown(type: number): never {
  throw new Error(`type ${type}`);
}
