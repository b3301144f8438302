import type { CustomHeader } from "./webhook.js";

/**
 * What a client may add to each delivery, by RFC 9110: a name is a token (5.1, 5.6.2), a value is a field value (5.5). So it holds no CR, LF or NUL,
 * and does not begin or end with white space.
 */
export const CUSTOM_HEADER_LIMITS = { headers: 20, nameCharacters: 128, valueCharacters: 4_096 } as const;

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/;

/** What the service or its HTTP client sets. */
const OWN = new Set([
  ...["content-type", "content-length", "content-encoding", "user-agent", "host", "expect", "date"],
]);
/** Names that begin like this are the service's own, in this release or in a later one. */
const OWN_PREFIXES = ["x-service-", "webhook-"];
/** They concern one connection, and not the receiver behind it (RFC 9110, 7.6.1, and RFC 2616, 13.5.1). */
const HOP_BY_HOP = new Set([
  ...["connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization"],
  ...["te", "trailer", "transfer-encoding", "upgrade"],
]);

/** What is wrong with one header. */
export interface CustomHeaderFault {
  /** As it was sent, but not endlessly long. */
  name: string;
  allowed: string;
}

/** What is wrong with custom headers, of which a schema has checked count and types. */
export function customHeaderFaults(headers: Readonly<Record<string, unknown>>): CustomHeaderFault[] {
  const faults: CustomHeaderFault[] = [];
  const seen = new Set<string>();
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    const allowed = seen.has(lower) ? "given once, as names do not differ by case" : allowedInstead(lower, value);
    seen.add(lower);
    if (allowed !== undefined) faults.push({ name: name.slice(0, CUSTOM_HEADER_LIMITS.nameCharacters), allowed });
  }
  return faults;
}

/** The headers of a request's body, in their order. */
export function customHeaders(headers: Readonly<Record<string, string>>): CustomHeader[] {
  return Object.entries(headers);
}

function allowedInstead(lowerName: string, value: unknown): string | undefined {
  const { nameCharacters, valueCharacters } = CUSTOM_HEADER_LIMITS;
  if (lowerName.length > nameCharacters) return `absent: a header name has at most ${nameCharacters} characters`;
  if (!NAME.test(lowerName)) return "absent: it is no name of a header (RFC 9110, section 5.1)";
  if (OWN.has(lowerName) || OWN_PREFIXES.some((prefix) => lowerName.startsWith(prefix))) {
    return "absent: the service sets this header itself";
  }
  if (HOP_BY_HOP.has(lowerName)) return "absent: it is a header of one connection (hop-by-hop)";
  if (typeof value !== "string") return undefined;
  if (value.length > valueCharacters) return `at most ${valueCharacters} characters`;
  return VALUE.test(value)
    ? undefined
    : "characters that a header may have (RFC 9110, section 5.5): no line break or other control character, none beyond U+00FF, and no space at its ends";
}
