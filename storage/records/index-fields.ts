/** Fields that index sections have in common. Integers are little-endian. */
import { RecordDecodeError } from "./record-decode-error.js";

/** The length of a text that is null. */
export const NULL_LENGTH = 0xffff_ffff;
/** 2^32: the high half of a 53-bit integer counts these. */
export const HIGH = 0x1_0000_0000;

/** The name with this code, which is its place in the list. @throws RecordDecodeError for an unknown code */
export function named<const Name extends string>(names: readonly Name[], code: number, what: string): Name {
  const name = names[code];
  if (name === undefined) throw new RecordDecodeError(`unknown ${what} code ${code}`);
  return name;
}

export function setUint53(view: DataView, at: number, value: number): void {
  view.setUint32(at, value % HIGH, true);
  view.setUint32(at + 4, Math.floor(value / HIGH), true);
}

export function uint53(view: DataView, at: number): number {
  return view.getUint32(at, true) + view.getUint32(at + 4, true) * HIGH;
}
