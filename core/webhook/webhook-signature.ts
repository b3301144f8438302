/**
 * How a delivery is signed, for sender and verifier. Each carries two HMAC-SHA256 signatures:
 *
 *     X-Service-Signature: t=<unix seconds>,v1=<hex of HMAC(secret's UTF-8 bytes, "<t>.<body>")>
 *     webhook-signature: v1,<base64 of HMAC(key, "<webhook-id>.<webhook-timestamp>.<body>")>
 *
 * The second is that of Standard Webhooks (https://github.com/standard-webhooks/standard-webhooks, spec). Its key is the decoded base64 after
 * `whsec_`, or the UTF-8 bytes of a secret without this prefix.
 */
import { createHmac } from "node:crypto";

export const SERVICE_SIGNATURE_HEADER = "X-Service-Signature";
const STANDARD_PREFIX = "whsec_";
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** The v1 signature of `X-Service-Signature`, in hex. */
export function serviceSignature(secret: string, timestampSeconds: number, body: Uint8Array): string {
  return createHmac("sha256", secret).update(`${timestampSeconds}.`).update(body).digest("hex");
}

/** The v1 signature of Standard Webhooks, in base64. */
export function standardSignature(secret: string, id: string, timestampSeconds: number, body: Uint8Array): string {
  return createHmac("sha256", standardKey(secret)).update(`${id}.${timestampSeconds}.`).update(body).digest("base64");
}

/** The signature headers of one attempt. `timestampSeconds` is the attempt's own time. */
export function signatureHeaders(
  secret: string,
  eventId: string,
  timestampSeconds: number,
  body: Uint8Array,
): Record<string, string> {
  return {
    [SERVICE_SIGNATURE_HEADER]: `t=${timestampSeconds},v1=${serviceSignature(secret, timestampSeconds, body)}`,
    "webhook-id": eventId,
    "webhook-timestamp": String(timestampSeconds),
    "webhook-signature": `v1,${standardSignature(secret, eventId, timestampSeconds, body)}`,
  };
}

/** Whether the secret can sign: after the prefix `whsec_` it must be base64. */
export function isUsableSecret(secret: string): boolean {
  if (!secret.startsWith(STANDARD_PREFIX)) return true;
  const encoded = secret.slice(STANDARD_PREFIX.length);
  return encoded !== "" && BASE64.test(encoded);
}

function standardKey(secret: string): Uint8Array | string {
  return secret.startsWith(STANDARD_PREFIX) ? Buffer.from(secret.slice(STANDARD_PREFIX.length), "base64") : secret;
}
