/** Packs JSON values one after the other, each as its length in bytes (u32, little-endian) and its MessagePack. For data without a column. */
import { decodeMessagePack } from "./message-pack.js";
import { MessagePackEncoder } from "./message-pack-encoder.js";

const LENGTH_BYTES = 4;

export function* packValues(values: Iterable<unknown>): Generator<Uint8Array, void> {
  const encoder = new MessagePackEncoder();
  for (const value of values) {
    const packed = encoder.encodeShared(value);
    const bytes = new Uint8Array(LENGTH_BYTES + packed.length);
    new DataView(bytes.buffer).setUint32(0, packed.length, true);
    bytes.set(packed, LENGTH_BYTES);
    yield bytes;
  }
}

export function* unpackValues(bytes: Uint8Array): Generator<unknown, void> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.length; ) {
    const end = at + LENGTH_BYTES + view.getUint32(at, true);
    yield decodeMessagePack(bytes.subarray(at + LENGTH_BYTES, end));
    at = end;
  }
}
