import { Buffer } from "node:buffer";
import { decode } from "@msgpack/msgpack";

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
const exactText = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Keys in the way of values: the library's own reader of long texts drops a leading byte order mark. */
const keyDecoder = {
  canBeCached: () => true,
  decode: (bytes: Uint8Array, offset: number, length: number) =>
    exactText.decode(bytes.subarray(offset, offset + length)),
};

/**
 * Decodes MessagePack that holds JSON values, as `encode` of the library made it, to exactly the value that was encoded.
 * Nothing is allocated beyond what the bytes can hold, whatever their heads claim: the library makes room for what an array's head claims,
 * and heads nest, so that some kilobytes could ask for gigabytes.
 *
 * @throws {Error} The bytes are not one MessagePack value.
 */
export function decodeMessagePack(bytes: Uint8Array): unknown {
  assertHolds(bytes);
  const limit = bytes.length;
  const limits = {
    maxStrLength: limit,
    maxBinLength: limit,
    maxArrayLength: limit,
    maxMapLength: limit,
    maxExtLength: limit,
  };
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!view.includes(BYTE_ORDER_MARK)) return decode(bytes, limits);
  // Rare: texts come as bytes, and are read here.
  return textsOf(decode(bytes, { ...limits, rawStrings: true, keyDecoder }));
}

function textsOf(value: unknown): unknown {
  if (value instanceof Uint8Array) return exactText.decode(value);
  if (Array.isArray(value)) return value.map(textsOf);
  if (typeof value !== "object" || value === null) return value;
  const fields = value as Record<string, unknown>;
  for (const key of Object.keys(fields)) fields[key] = textsOf(fields[key]);
  return fields;
}

/** Throws unless the bytes left hold at least a byte for every value that the heads so far have promised. */
function assertHolds(bytes: Uint8Array): void {
  let promised = 1;
  for (let at = 0; promised > 0; promised--) {
    const head = bytes[at++];
    if (head === undefined) throw new RangeError("the bytes end within a value");
    if (head >= 0x80 && head <= 0x8f) promised += 2 * (head & 0x0f);
    else if (head >= 0x90 && head <= 0x9f) promised += head & 0x0f;
    else if (head >= 0xa0 && head <= 0xbf) at += head & 0x1f;
    else if (head >= 0xc0 && head <= 0xdf) {
      const lengthBytes = LENGTH_BYTES[head - 0xc0] as number;
      let length = 0;
      for (const end = at + lengthBytes; at < end; at++) length = length * 256 + (bytes[at] ?? 0);
      if (head === 0xdc || head === 0xdd) promised += length;
      else if (head === 0xde || head === 0xdf) promised += 2 * length;
      else at += length + (FIXED_BYTES[head - 0xc0] as number);
    }
    if (promised - 1 > bytes.length - at) throw new RangeError("a head promises more than the bytes hold");
  }
}

/** Behind the heads 0xc0 to 0xdf: bytes of the length that the head has, and of what it has besides (numbers, the type of an ext). */
const LENGTH_BYTES = [0, 0, 0, 0, 1, 2, 4, 1, 2, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 2, 4, 2, 4];
const FIXED_BYTES = [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 3, 5, 9, 17, 0, 0, 0, 0, 0, 0, 0];
