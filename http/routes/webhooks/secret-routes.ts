import { createPublicKey } from "node:crypto";
import { type RotateSecretBody, rotatedSecret } from "../../../core/webhook/webhook-request.js";
import type { View } from "../../../storage/view/view.js";
import { jsonReply } from "../../replies/reply.js";
import { defineRoute, type Route } from "../../requests/route.js";
import { jsonResponse, WEBHOOK_ID } from "../declared-parameters.js";
import {
  answerOf,
  bodyDeclaration,
  type ReceiverPolicy,
  requireWebhook,
  WEBHOOK_TAG,
  type WriteWebhook,
} from "./webhook-routes.js";

/** What deliveries are signed with. */
export function secretRoutes(view: View, write: WriteWebhook, receiverPolicy: ReceiverPolicy): Route[] {
  return [rotateRoute(view, write, receiverPolicy), signingKeyRoute(write)];
}

function rotateRoute(view: View, write: WriteWebhook, receiverPolicy: ReceiverPolicy): Route {
  return defineRoute({
    method: "POST",
    path: "/webhooks/{webhook_id}/rotate-secret",
    operationId: "rotateWebhookSecret",
    tag: WEBHOOK_TAG,
    summary: "Gives the webhook a new secret, while the present one signs beside it for some time.",
    description:
      "Until `previous_secret_expires_at` each delivery carries the signatures of both secrets, the new one's first. So a receiver that has either of them " +
      "takes every delivery. A PATCH of `secret` ends the overlap at once. If the answer was lost, ask for the webhook before you rotate again.",
    pathParameters: { webhook_id: WEBHOOK_ID },
    body: bodyDeclaration(receiverPolicy, "RotateSecretRequest", "The new secret."),
    responses: { 200: jsonResponse("WebhookResponse", "The webhook with its new secret.") },
    errors: ["rotation_in_progress"],
    async handle({ params, body }) {
      const webhookId = params.webhook_id as string;
      requireWebhook(view, webhookId);
      await write({ op: "rotate_secret", webhookId, rotation: rotatedSecret(body as RotateSecretBody) });
      return jsonReply(answerOf(view, requireWebhook(view, webhookId)));
    },
  });
}

function signingKeyRoute(write: WriteWebhook): Route {
  return defineRoute({
    path: "/webhooks/signing-key",
    operationId: "getWebhookSigningKey",
    tag: WEBHOOK_TAG,
    summary: "The public key that verifies deliveries of webhooks with `signing: ed25519`.",
    description:
      "All these webhooks have the same key. It stays the same as long as the service keeps its data directory. It is made when it is asked for, or " +
      "needed, for the first time.",
    responses: { 200: jsonResponse("SigningKeyResponse", "The public key.") },
    errors: ["read_only_hub"],
    async handle() {
      const pem = await write({ op: "signing_key" });
      const { x } = createPublicKey(pem).export({ format: "jwk" }) as { x: string };
      const publicKey = `whpk_${Buffer.from(x, "base64url").toString("base64")}`;
      return jsonReply({ algorithm: "ed25519", public_key: publicKey, public_key_pem: pem });
    },
  });
}
