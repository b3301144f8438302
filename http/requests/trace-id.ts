import { randomFillSync } from "node:crypto";

// Drawn and encoded for many ids at once: a call into the generator or the encoder costs more than an id.
const POOL_BYTES = 16 * 1024;
/** Hexadecimal, two for each byte. */
export const TRACE_ID_DIGITS = 32;
const ZEROS = "0".repeat(TRACE_ID_DIGITS);
const pool = Buffer.allocUnsafe(POOL_BYTES);
let digits = "";
let used = 0;

/** 32 random lower-case hex digits, never all zero. */
export function freshTraceId(): string {
  if (used === digits.length) {
    digits = randomFillSync(pool).toString("hex");
    used = 0;
  }
  const id = digits.slice(used, used + TRACE_ID_DIGITS);
  used += TRACE_ID_DIGITS;
  return id === ZEROS ? freshTraceId() : id;
}

// version - trace-id - parent-id - flags; a version above 00 may have more fields after another dash.
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/;

/**
 * The trace-id of a `traceparent` header (W3C Trace Context, section 3.2). Undefined if the header is invalid: version ff, an all-zero
 * trace-id or parent-id, upper-case digits, or more than four fields in version 00.
 */
export function traceIdOf(traceparent: string): string | undefined {
  const match = TRACEPARENT.exec(traceparent);
  if (match === null) return undefined;
  const [, version, traceId, parentId, rest] = match;
  if (version === "ff" || (version === "00" && rest !== undefined)) return undefined;
  if (traceId === ZEROS || parentId === "0".repeat(16)) return undefined;
  return traceId;
}
