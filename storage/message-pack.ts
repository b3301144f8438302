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
 * Nothing is allocated beyond what the bytes can hold, whatever their heads claim.
 *
 * @throws {Error} The bytes are not one MessagePack value.
 */
export function decodeMessagePack(bytes: Uint8Array): unknown {
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
