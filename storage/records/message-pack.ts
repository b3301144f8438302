import { Buffer } from "node:buffer";
import { encode } from "@msgpack/msgpack";
import { MessagePackDecoder } from "./message-pack-decoder.js";

const decoder = new MessagePackDecoder();

/**
 * Decodes MessagePack that holds JSON values, as `MessagePackEncoder` made it, to exactly the value that was encoded. Nothing is allocated
 * beyond what the bytes can hold, whatever their heads claim: heads nest, so that some kilobytes could ask for gigabytes.
 *
 * @throws {Error} The bytes are not one MessagePack value that JSON has.
 */
export function decodeMessagePack(bytes: Uint8Array): unknown {
  return decoder.decode(bytes);
}

/**
 * The bytes of one value within maps, found by skipping all before it: of a large document, a small part without decoding the rest.
 * Undefined where a map on the way does not have the key, or is none.
 *
 * @param path keys from the outermost map inwards
 * @throws {Error} The bytes up to the value are not MessagePack.
 */
export function messagePackField(bytes: Uint8Array, path: readonly string[]): Uint8Array | undefined {
  let at = 0;
  for (const key of path) {
    const map = readMapHead(bytes, at);
    if (map === undefined) return undefined;
    at = map.at;
    const wanted = encodeText(key);
    let isFound = false;
    for (let left = map.count; left > 0 && !isFound; left--) {
      const end = skipValues(bytes, at, 1);
      isFound = wanted.length === end - at && wanted.equals(bytes.subarray(at, end));
      at = isFound ? end : skipValues(bytes, end, 1);
    }
    if (!isFound) return undefined;
  }
  return bytes.subarray(at, skipValues(bytes, at, 1));
}

/**
 * The bytes of each value of an array, in its order, and of keys and values of a map in turn: found by skipping. Undefined for another value.
 *
 * @throws {Error} The bytes are not MessagePack.
 */
export function messagePackParts(bytes: Uint8Array): Uint8Array[] | undefined {
  const map = readMapHead(bytes, 0);
  const head = map ?? readArrayHead(bytes, 0);
  if (head === undefined) return undefined;
  const parts: Uint8Array[] = [];
  let { at } = head;
  for (let left = map === undefined ? head.count : 2 * head.count; left > 0; left--) {
    const end = skipValues(bytes, at, 1);
    parts.push(bytes.subarray(at, end));
    at = end;
  }
  return parts;
}

interface Head {
  count: number;
  /** Behind it. */
  at: number;
}

function readMapHead(bytes: Uint8Array, at: number): Head | undefined {
  return readHead(bytes, at, 0x80, 0xde);
}

function readArrayHead(bytes: Uint8Array, at: number): Head | undefined {
  return readHead(bytes, at, 0x90, 0xdc);
}

/** @param short the head of none, of up to 15 in the head itself; `long` that of two bytes of length, the next that of four */
function readHead(bytes: Uint8Array, at: number, short: number, long: number): Head | undefined {
  const head = bytes[at];
  if (head === undefined) throw new RangeError("the bytes end before a value");
  if ((head & 0xf0) === short) return { count: head & 0x0f, at: at + 1 };
  const lengthBytes = head === long ? 2 : head === long + 1 ? 4 : 0;
  if (lengthBytes === 0) return undefined;
  if (at + lengthBytes >= bytes.length) throw new RangeError("the bytes end within a head");
  let count = 0;
  for (let nth = 1; nth <= lengthBytes; nth++) count = count * 256 + (bytes[at + nth] as number);
  return { count, at: at + 1 + lengthBytes };
}

/** A key as the encoder writes it: with the shortest head. */
function encodeText(key: string): Buffer {
  return Buffer.from(encode(key));
}

/** Where the bytes behind so many values begin. Throws unless the bytes hold at least one for every value that the heads so far have promised. */
function skipValues(bytes: Uint8Array, start: number, count: number): number {
  let promised = count;
  let at = start;
  for (; promised > 0; promised--) {
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
  return at;
}

/** Behind the heads 0xc0 to 0xdf: bytes of the length that the head has, and of what it has besides (numbers, the type of an ext). */
const LENGTH_BYTES = [0, 0, 0, 0, 1, 2, 4, 1, 2, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 2, 4, 2, 4];
const FIXED_BYTES = [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 3, 5, 9, 17, 0, 0, 0, 0, 0, 0, 0];
