import { createHash, timingSafeEqual } from "node:crypto";
import { canonicalUuid } from "../../../core/identifiers.js";
import type { JsonObject, JsonValue } from "../../../core/json/json.js";
import { LIMITS } from "../../../core/limits.js";
import type { Refusal } from "../../../core/link/refusal.js";
import { PROTOCOL_VERSION } from "../frame-codec.js";
import { decodeBody } from "../strict-message-pack.js";

const PRODUCER_NAME = new RegExp(`^[a-z0-9._-]{1,${LIMITS.producerCharacters}}$`);
const FIELDS = ["protocol", "producer", "instance", "token"];

export type HelloRefusal = Refusal<"invalid_message" | "unauthorized">;
/** `instance` is a canonical UUID; null if the hello named none. */
export type HelloAnswer =
  | { ok: true; producer: string; instance: string | null }
  | { ok: false; refusal: HelloRefusal };

/**
 * Reads the body of a hello. The token is checked first, so that nobody without it learns anything.
 *
 * @param token what the connection must show; null if it needs none
 */
export function readHello(bytes: Uint8Array, token: string | null): HelloAnswer {
  const decoded = decodeBody(bytes);
  const body: JsonObject = decoded.ok ? decoded.body : {};
  if (token !== null && !isToken(body.token, token)) {
    const message = "this connection needs the cell's token";
    return { ok: false, refusal: { code: "unauthorized", message, params: { path: "/token", allowed: "the token" } } };
  }
  if (!decoded.ok) {
    const { message, params } = decoded.fault;
    return { ok: false, refusal: { code: "invalid_message", message, params: { ...params } } };
  }
  for (const field of Object.keys(body)) {
    if (!FIELDS.includes(field)) return invalid(field, null, `absent: the fields are ${FIELDS.join(", ")}`);
  }
  const { protocol, producer } = body;
  if (protocol !== PROTOCOL_VERSION) return invalid("protocol", protocol ?? null, String(PROTOCOL_VERSION));
  if (typeof producer !== "string" || !PRODUCER_NAME.test(producer)) {
    return invalid("producer", producer ?? null, `1 to ${LIMITS.producerCharacters} of a-z 0-9 . _ -`);
  }
  const instance = body.instance ?? null;
  const canonical = typeof instance === "string" ? canonicalUuid(instance) : undefined;
  if (instance !== null && canonical === undefined) return invalid("instance", instance, "a UUID");
  const given = body.token;
  if (given !== undefined && given !== null && typeof given !== "string") {
    return invalid("token", null, "a string");
  }
  return { ok: true, producer, instance: canonical ?? null };
}

function invalid(field: string, value: JsonValue, allowed: string): HelloAnswer {
  const message = `/${field} of hello must be ${allowed}`;
  return { ok: false, refusal: { code: "invalid_message", message, params: { path: `/${field}`, value, allowed } } };
}

/** Compares digests of equal length, so that the time it takes says nothing about the token. */
function isToken(given: JsonValue | undefined, token: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(typeof given === "string" ? given : ""), digest(token)) && typeof given === "string";
}
