import { createPublicKey, verify } from "node:crypto";
import type { ReceivedRequest } from "./receiver.js";

/** Whether the signature of Standard Webhooks for Ed25519 (`v1a`) is of this key. The package `standardwebhooks` knows only `v1`. */
export function isSignedBy(publicKeyPem: string, { headers, body }: ReceivedRequest): boolean {
  const [version, signature = ""] = String(headers["webhook-signature"]).split(",");
  const signed = Buffer.concat([Buffer.from(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.`), body]);
  const key = createPublicKey(publicKeyPem);
  return version === "v1a" && verify(null, signed, key, Buffer.from(signature, "base64"));
}
