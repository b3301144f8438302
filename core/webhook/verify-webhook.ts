/**
 * For receivers: checks that a delivery comes unchanged from the service that holds the secret, and is not an old one sent again. The package
 * exports it as `inspection-results-service/verify`; it needs nothing but node:crypto.
 *
 *     import { verifyWebhook } from "inspection-results-service/verify";
 *     verifyWebhook({ secret, headers: request.headers, body: rawBody });
 *
 * `body` must be the raw bytes of the request: JSON that was parsed and serialised again has other bytes.
 */
import { timingSafeEqual } from "node:crypto";
import { serviceSignature } from "./webhook-signature.js";

/** How far the signed time may be from the receiver's own, in either direction. */
export const DEFAULT_TOLERANCE_SECONDS = 300;

/** Which check failed. */
export type VerificationFault =
  /** The request has no X-Service-Signature: the webhook has no secret, or the sender is another. */
  | "signature_missing"
  /** The header is not `t=<unix seconds>` with one `,v1=<64 hex digits>` or several, or came more than once. */
  | "signature_malformed"
  /** The signed time is too far back: somebody sent an old delivery again, or the clocks disagree. */
  | "timestamp_too_old"
  /** The signed time is too far ahead: the clocks disagree. */
  | "timestamp_too_new"
  /** The secret or the body differs from what was signed. */
  | "signature_mismatch";

export class WebhookVerificationError extends Error {
  readonly fault: VerificationFault;

  constructor(fault: VerificationFault, message: string) {
    super(message);
    this.name = "WebhookVerificationError";
    this.fault = fault;
  }
}

export interface VerifyWebhookOptions {
  secret: string;
  /** Node's headers (names in lower case, a repeated header as a list or joined), or a Headers object. */
  headers: Readonly<Record<string, string | readonly string[] | undefined>> | { get(name: string): string | null };
  /** The request's raw body. A string is taken as its UTF-8 bytes. */
  body: Uint8Array | string;
  /** Default 300. */
  toleranceSeconds?: number;
  /** Unix seconds; default: the wall clock. */
  nowSeconds?: number;
}

const HEADER_NAME = "x-service-signature";
/** Two signatures while two secrets overlap. Any of them may be of the receiver's secret. */
const HEADER = /^t=(\d{1,12})((?:,v1=[0-9a-f]{64}){1,16})$/;

/**
 * @returns when the request was signed
 * @throws WebhookVerificationError naming the check that failed; then the request must not be acted on
 */
export function verifyWebhook(options: VerifyWebhookOptions): { timestampSeconds: number } {
  const { secret, toleranceSeconds = DEFAULT_TOLERANCE_SECONDS, nowSeconds = Date.now() / 1000 } = options;
  if (secret === "") throw new TypeError("secret is empty: pass the secret of the webhook");
  // With NaN every age would pass.
  if (!(Number.isFinite(toleranceSeconds) && toleranceSeconds >= 0)) {
    throw new TypeError(`toleranceSeconds is ${toleranceSeconds}, but must be a finite number of at least 0`);
  }
  if (!Number.isFinite(nowSeconds)) throw new TypeError(`nowSeconds is ${nowSeconds}, but must be a finite number`);
  const header = headerOf(options.headers);
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
  const body = typeof options.body === "string" ? Buffer.from(options.body) : options.body;
  const expected = Buffer.from(serviceSignature(secret, timestampSeconds, body), "hex");
  // The signature comes first, because only a signed time can be trusted.
  const given = (match[2] as string).split(",v1=").slice(1);
  if (!given.some((signature) => timingSafeEqual(expected, Buffer.from(signature, "hex")))) {
    throw new WebhookVerificationError("signature_mismatch", "the signature does not match this secret and this body");
  }
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

/** The header's value. A repeated header is joined, and the pattern then refuses it. */
function headerOf(headers: VerifyWebhookOptions["headers"]): string | undefined {
  if (typeof headers.get === "function") return headers.get(HEADER_NAME) ?? undefined;
  const found: string[] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (name.toLowerCase() !== HEADER_NAME || value === undefined) continue;
    if (typeof value === "string") found.push(value);
    else if (Array.isArray(value)) found.push(...value);
  }
  return found.length === 0 ? undefined : found.join(", ");
}
