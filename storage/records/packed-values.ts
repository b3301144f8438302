/** Packs JSON values one after the other, as MessagePack. For data without a column. */
import { decodeMessagePackValues, encodeMessagePack } from "./message-pack.js";

export function* packValues(values: Iterable<unknown>): Generator<Uint8Array, void> {
  for (const value of values) yield encodeMessagePack(value);
}

export const unpackValues = decodeMessagePackValues;
