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

export function u32At(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24)) >>>
    0
  );
}

export function u53At(bytes: Uint8Array, at: number): number {
  return u32At(bytes, at) + u32At(bytes, at + 4) * HIGH;
}

export function uint53(view: DataView, at: number): number {
  return view.getUint32(at, true) + view.getUint32(at + 4, true) * HIGH;
}
