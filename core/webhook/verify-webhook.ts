/**
 * For receivers: checks that a delivery is from the service that holds the secret, unchanged, and not an old one sent again. Exported
 * from the package as `inspection-results-service/verify`; it needs nothing but node:crypto.
 *
 *     import { verifyWebhook } from "inspection-results-service/verify";
 *     verifyWebhook({ secret, headers: request.headers, body: rawBody });
 *
 * `body` is the raw bytes as they came: JSON that was parsed and serialised again has other bytes.
 */
import { timingSafeEqual } from "node:crypto";
import { serviceSignature } from "./webhook-signature.js";

/** How far the signed time may be from the receiver's own, in either direction. */
export const DEFAULT_TOLERANCE_SECONDS = 300;

/** Which check failed. */
export type VerificationFault =
  /** The request has no X-Service-Signature: the webhook has no secret, or the sender is another. */
  | "signature_missing"
  /** The header is not `t=<unix seconds>,v1=<64 hex digits>`, or came more than once. */
  | "signature_malformed"
  /** The signed time is too far back: an old delivery sent again, or the clocks disagree. */
  | "timestamp_too_old"
  /** The signed time is too far ahead: the clocks disagree. */
  | "timestamp_too_new"
  /** Another secret, or another body. */
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
  /** As Node has them (names in lower case, a header that came twice as a list or joined), or a Headers object. */
  headers: Readonly<Record<string, string | readonly string[] | undefined>> | { get(name: string): string | null };
  /** Raw, as it came. A string is taken as its UTF-8 bytes. */
  body: Uint8Array | string;
  /** Default 300. */
  toleranceSeconds?: number;
  /** Unix seconds; default: the wall clock. */
  nowSeconds?: number;
}

const HEADER_NAME = "x-service-signature";
const HEADER = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/;

/**
 * @returns when the request was signed
 * @throws WebhookVerificationError naming the check that failed; then the request must not be acted on
 */
export function verifyWebhook(options: VerifyWebhookOptions): { timestampSeconds: number } {
  const { secret, toleranceSeconds = DEFAULT_TOLERANCE_SECONDS, nowSeconds = Date.now() / 1000 } = options;
  if (secret === "") throw new TypeError("the secret is empty: nothing can be verified with it");
  // Compared with no number, every age would pass.
  if (!(Number.isFinite(toleranceSeconds) && toleranceSeconds >= 0)) {
    throw new TypeError(`toleranceSeconds is ${toleranceSeconds}: a finite number of at least 0 is needed`);
  }
  if (!Number.isFinite(nowSeconds)) throw new TypeError(`nowSeconds is ${nowSeconds}: a finite number is needed`);
  const header = headerOf(options.headers);
  if (header === undefined) {
    throw new WebhookVerificationError("signature_missing", "the request has no X-Service-Signature");
  }
  const match = HEADER.exec(header);
  if (match === null) {
    throw new WebhookVerificationError(
      "signature_malformed",
      "X-Service-Signature must be t=<unix seconds>,v1=<64 hex digits>, once",
    );
  }
  const timestampSeconds = Number(match[1]);
  const body = typeof options.body === "string" ? Buffer.from(options.body) : options.body;
  const expected = Buffer.from(serviceSignature(secret, timestampSeconds, body), "hex");
  // The signature first: what the time says counts only when it is the sender's own word.
  if (!timingSafeEqual(expected, Buffer.from(match[2] as string, "hex"))) {
    throw new WebhookVerificationError("signature_mismatch", "the signature is not that of this secret and this body");
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

/** The header's value; joined when it came more than once, which the pattern then refuses. */
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
