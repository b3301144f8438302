/**
 * How a delivery is signed, for sender and verifier. Each carries two HMAC-SHA256 signatures:
 *
 *     X-Service-Signature: t=<unix seconds>,v1=<hex of HMAC(secret's UTF-8 bytes, "<t>.<body>")>
 *     webhook-signature: v1,<base64 of HMAC(key, "<webhook-id>.<webhook-timestamp>.<body>")>
 *
 * The second is that of Standard Webhooks (https://github.com/standard-webhooks/standard-webhooks, spec). Its key is the decoded base64 after
 * `whsec_`, or the UTF-8 bytes of a secret without this prefix.
 *
 * While two secrets overlap, both sign: `t=…,v1=<new>,v1=<old>` and `v1,<new> v1,<old>`. With an Ed25519 key (RFC 8032) the second header is
 * `v1a,<base64 of the signature of the same bytes>` instead.
 */
import { createHmac, createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";

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

/** What signs a delivery. */
export interface Signers {
  /** The newest first; none: no HMAC. */
  readonly secrets: readonly string[];
  /** An Ed25519 private key in PEM (PKCS #8); null: `webhook-signature` is an HMAC too. */
  readonly privateKey: string | null;
}

/** The signature headers of one attempt; none if nothing signs. `timestampSeconds` is the attempt's own time. */
export function signatureHeaders(
  { secrets, privateKey }: Signers,
  eventId: string,
  timestampSeconds: number,
  body: Uint8Array,
): Record<string, string> {
  const headers: Record<string, string> = {};
  if (secrets.length > 0) {
    const signatures = secrets.map((secret) => `v1=${serviceSignature(secret, timestampSeconds, body)}`);
    headers[SERVICE_SIGNATURE_HEADER] = [`t=${timestampSeconds}`, ...signatures].join(",");
  }
  const standard =
    privateKey === null
      ? secrets.map((secret) => `v1,${standardSignature(secret, eventId, timestampSeconds, body)}`)
      : [`v1a,${asymmetricSignature(privateKey, eventId, timestampSeconds, body)}`];
  if (standard.length === 0) return headers;
  headers["webhook-id"] = eventId;
  headers["webhook-timestamp"] = String(timestampSeconds);
  headers["webhook-signature"] = standard.join(" ");
  return headers;
}

/** The v1a signature of Standard Webhooks, in base64. @param privateKey PEM of an Ed25519 key */
function asymmetricSignature(privateKey: string, id: string, timestampSeconds: number, body: Uint8Array): string {
  const signed = Buffer.concat([Buffer.from(`${id}.${timestampSeconds}.`), body]);
  return sign(null, signed, keyOf(privateKey)).toString("base64");
}

/** The service has one key, and reading it takes as long as signing. */
let lastKey: { pem: string; key: KeyObject } | undefined;

function keyOf(pem: string): KeyObject {
  if (lastKey?.pem !== pem) lastKey = { pem, key: createPrivateKey(pem) };
  return lastKey.key;
}

/** The key of a PEM (SPKI); undefined if it is no Ed25519 public key. */
export function ed25519PublicKey(pem: string): KeyObject | undefined {
  // From a private key Node would make the public one. Nobody should pass that around.
  if (!/^\s*-----BEGIN PUBLIC KEY-----/.test(pem)) return undefined;
  try {
    const key = createPublicKey(pem);
    return key.asymmetricKeyType === "ed25519" ? key : undefined;
  } catch {
    return undefined;
  }
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
