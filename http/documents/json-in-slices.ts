import { createHash } from "node:crypto";
import type { Slices } from "./shared-work.js";

/** Pieces of text are joined up to this length before they are encoded. */
const PART_CHARACTERS = 32 * 1024;
/** Depth down to which the value is written piece by piece; anything deeper is serialised in one go. */
const DEPTH = 3;

/** Bytes of an answer, and their SHA-1 in base64url. */
export interface HashedBytes {
  bytes: Uint8Array;
  sha1: string;
}

/** The same as JSON.stringify, in slices, so that other work gets its turn. The value must not change in the meantime. */
export async function jsonInSlices(value: unknown, slices: Slices): Promise<HashedBytes> {
  const parts: Uint8Array[] = [];
  let text = "";
  for (const piece of jsonPieces(value, 0)) {
    text += piece;
    if (text.length < PART_CHARACTERS) continue;
    parts.push(Buffer.from(text));
    text = "";
    const pause = slices.giveWay();
    if (pause !== undefined) await pause;
  }
  parts.push(Buffer.from(text));
  return joinInSlices(parts, slices);
}

function* jsonPieces(value: unknown, depth: number): Generator<string, void> {
  if (typeof value !== "object" || value === null || depth === DEPTH) {
    yield JSON.stringify(value);
  } else if (Array.isArray(value)) {
    let separator = "[";
    for (const item of value) {
      yield separator + (JSON.stringify(item) ?? "null");
      separator = ",";
    }
    yield separator === "[" ? "[]" : "]";
  } else {
    let separator = "{";
    for (const [key, member] of Object.entries(value)) {
      if (member === undefined) continue;
      yield `${separator}${JSON.stringify(key)}:`;
      yield* jsonPieces(member, depth + 1);
      separator = ",";
    }
    yield separator === "{" ? "{}" : "}";
  }
}

/** The parts joined, in a buffer of their own. */
export async function joinInSlices(parts: readonly Uint8Array[], slices: Slices): Promise<HashedBytes> {
  const bytes = Buffer.allocUnsafeSlow(parts.reduce((sum, part) => sum + part.length, 0));
  const hash = createHash("sha1");
  let at = 0;
  for (const part of parts) {
    hash.update(part);
    bytes.set(part, at);
    at += part.length;
    const pause = slices.giveWay();
    if (pause !== undefined) await pause;
  }
  return { bytes, sha1: hash.digest("base64url") };
}
