/**
 * For receivers: checks that a delivery comes unchanged from the service that holds the secret, and is not an old one sent again. The package
 * exports it as `inspection-results-service/verify`; it needs nothing but node:crypto.
 *
 *     import { verifyWebhook } from "inspection-results-service/verify";
 *     verifyWebhook({ secret, headers: request.headers, body: rawBody });
 *
 * `body` must be the raw bytes of the request: JSON that was parsed and serialised again has other bytes.
 */
import { timingSafeEqual, verify } from "node:crypto";
import { ed25519PublicKey, isUsableSecret, serviceSignature } from "./webhook-signature.js";

/** How far the signed time may be from the receiver's own, in either direction. */
export const DEFAULT_TOLERANCE_SECONDS = 300;

/** Which check failed. */
export type VerificationFault =
  /** The request has no such signature: the webhook has no secret or does not sign with ed25519, or the sender is another. */
  | "signature_missing"
  /** The header has another form than it should have, or came more than once. */
  | "signature_malformed"
  /** The signed time is too far back: somebody sent an old delivery again, or the clocks disagree. */
  | "timestamp_too_old"
  /** The signed time is too far ahead: the clocks disagree. */
  | "timestamp_too_new"
  /** The secret, the key or the body differs from what was signed. */
  | "signature_mismatch";

export class WebhookVerificationError extends Error {
  readonly fault: VerificationFault;

  constructor(fault: VerificationFault, message: string) {
    super(message);
    this.name = "WebhookVerificationError";
    this.fault = fault;
  }
}

/** Either `secret` or `publicKey` must be given. */
export interface VerifyWebhookOptions {
  /** The secret of the webhook. It verifies `X-Service-Signature`. */
  secret?: string | undefined;
  /** For a webhook with `signing: "ed25519"`: the `public_key_pem` of `GET /webhooks/signing-key`. It verifies `webhook-signature`. */
  publicKey?: string | undefined;
  /** Node's headers (names in lower case, a repeated header as a list or joined), or a Headers object. */
  headers: Readonly<Record<string, string | readonly string[] | undefined>> | { get(name: string): string | null };
  /** The request's raw body. A string is taken as its UTF-8 bytes. */
  body: Uint8Array | string;
  /** Default 300. */
  toleranceSeconds?: number;
  /** Unix seconds; default: the wall clock. */
  nowSeconds?: number;
}

type Headers = VerifyWebhookOptions["headers"];

/** Two signatures while two secrets overlap. Any of them may be of the receiver's secret. */
const HEADER = /^t=(\d{1,12})((?:,v1=[0-9a-f]{64}){1,16})$/;
const STANDARD_HEADER = /^v\w+,[A-Za-z0-9+/=]+(?: v\w+,[A-Za-z0-9+/=]+){0,15}$/;

/**
 * @returns when the request was signed
 * @throws WebhookVerificationError naming the check that failed; then the request must not be acted on
 */
export function verifyWebhook(options: VerifyWebhookOptions): { timestampSeconds: number } {
  const { secret, publicKey, headers, toleranceSeconds = DEFAULT_TOLERANCE_SECONDS } = options;
  const { nowSeconds = Date.now() / 1000 } = options;
  // With NaN every age would pass.
  if (!(Number.isFinite(toleranceSeconds) && toleranceSeconds >= 0)) {
    throw new TypeError(`toleranceSeconds is ${toleranceSeconds}, but must be a finite number of at least 0`);
  }
  if (!Number.isFinite(nowSeconds)) throw new TypeError(`nowSeconds is ${nowSeconds}, but must be a finite number`);
  if ((secret === undefined) === (publicKey === undefined)) {
    throw new TypeError(
      "pass either secret or publicKey: the secret of the webhook, or the key of GET /webhooks/signing-key",
    );
  }
  const body = typeof options.body === "string" ? Buffer.from(options.body) : options.body;
  // The signature comes first, because only a signed time can be trusted.
  const timestampSeconds =
    publicKey === undefined ? signedBySecret(secret as string, headers, body) : signedByKey(publicKey, headers, body);
  const ageSeconds = nowSeconds - timestampSeconds;
  if (ageSeconds > toleranceSeconds) {
    throw new WebhookVerificationError(
      "timestamp_too_old",
      `signed ${Math.round(ageSeconds)} s ago; at most ${toleranceSeconds} s are accepted`,
    );
  }
  if (-ageSeconds > toleranceSeconds) {
    throw new WebhookVerificationError(
      "timestamp_too_new",
      `signed ${Math.round(-ageSeconds)} s in the future; at most ${toleranceSeconds} s are accepted`,
    );
  }
  return { timestampSeconds };
}

/** @returns the signed time, in Unix seconds */
function signedBySecret(secret: string, headers: Headers, body: Uint8Array): number {
  // Whoever knows that a receiver has no secret could sign with an empty one.
  if (typeof secret !== "string" || secret === "" || !isUsableSecret(secret)) {
    throw new TypeError("secret must be the secret of the webhook: a text that is not empty, with base64 after whsec_");
  }
  const header = headerOf(headers, "x-service-signature");
  if (header === undefined) {
    throw new WebhookVerificationError("signature_missing", "the request has no X-Service-Signature");
  }
  const match = HEADER.exec(header);
  if (match === null) {
    throw new WebhookVerificationError(
      "signature_malformed",
      "X-Service-Signature must be t=<unix seconds>,v1=<64 hex digits>, with one v1 or several, once",
    );
  }
  const timestampSeconds = Number(match[1]);
  const expected = Buffer.from(serviceSignature(secret, timestampSeconds, body), "hex");
  const given = (match[2] as string).split(",v1=").slice(1);
  if (!given.some((signature) => timingSafeEqual(expected, Buffer.from(signature, "hex")))) {
    throw new WebhookVerificationError("signature_mismatch", "the signature does not match this secret and this body");
  }
  return timestampSeconds;
}

/** As `signedBySecret`, by the Ed25519 signature of Standard Webhooks. */
function signedByKey(publicKey: string, headers: Headers, body: Uint8Array): number {
  const key = ed25519PublicKey(publicKey);
  if (key === undefined) throw new TypeError("publicKey must be an Ed25519 public key in PEM");
  const id = headerOf(headers, "webhook-id");
  const time = headerOf(headers, "webhook-timestamp");
  const signatures = headerOf(headers, "webhook-signature");
  if (id === undefined || time === undefined || signatures === undefined) {
    throw new WebhookVerificationError(
      "signature_missing",
      "the request has not all of webhook-id, webhook-timestamp and webhook-signature",
    );
  }
  if (!/^\d{1,12}$/.test(time) || !STANDARD_HEADER.test(signatures)) {
    throw new WebhookVerificationError(
      "signature_malformed",
      "webhook-timestamp must be Unix seconds, and webhook-signature v1a,<base64>, with one signature or several, once",
    );
  }
  const given = signatures.split(" ").filter((one) => one.startsWith("v1a,"));
  if (given.length === 0) {
    throw new WebhookVerificationError(
      "signature_missing",
      "webhook-signature has no v1a: the webhook signs with hmac",
    );
  }
  const signed = Buffer.concat([Buffer.from(`${id}.${time}.`), body]);
  if (!given.some((one) => verify(null, signed, key, Buffer.from(one.slice(4), "base64")))) {
    throw new WebhookVerificationError("signature_mismatch", "the signature does not match this key and this body");
  }
  return Number(time);
}

/** The header's value. A repeated header is joined, and the pattern then refuses it. */
function headerOf(headers: Headers, header: string): string | undefined {
  if (typeof headers.get === "function") return headers.get(header) ?? undefined;
  const found: string[] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (name.toLowerCase() !== header || value === undefined) continue;
    if (typeof value === "string") found.push(value);
    else if (Array.isArray(value)) found.push(...value);
  }
  return found.length === 0 ? undefined : found.join(", ");
}
