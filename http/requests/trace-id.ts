import { randomUUID } from "node:crypto";

/** Hexadecimal, two for each byte. */
export const TRACE_ID_DIGITS = 32;
const ZEROS = "0".repeat(TRACE_ID_DIGITS);

/** 32 lower-case hex digits, of which 122 bits are random. */
export function freshTraceId(): string {
  return randomUUID().replaceAll("-", "");
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
