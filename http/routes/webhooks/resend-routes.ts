import { LIMITS } from "../../../core/limits.js";
import { ServiceError, unknownId } from "../../../core/service-errors.js";
import {
  type ResendBody,
  resendQuery,
  resendRequestFaults,
  WEBHOOK_REQUEST_SCHEMAS,
} from "../../../core/webhook/webhook-request.js";
import { validators } from "../../../core/webhook/webhook-request-validators.js";
import type { View } from "../../../storage/view/view.js";
import type { ThreadSlices } from "../../documents/thread-slices.js";
import { jsonReply } from "../../replies/reply.js";
import { defineRoute, type Route } from "../../requests/route.js";
import { jsonResponse, RESEND_ID, WEBHOOK_ID } from "../declared-parameters.js";
import { requireWebhook, WEBHOOK_TAG, type WriteWebhook } from "./webhook-routes.js";

/** One more attempt of many deliveries. */
export function resendRoutes(view: View, write: WriteWebhook, slices: ThreadSlices): Route[] {
  return [beginRoute(view, write, slices), figuresRoute(view, write), cancelRoute(view, write)];
}

function beginRoute(view: View, write: WriteWebhook, slices: ThreadSlices): Route {
  /** Webhooks whose deliveries are being chosen: one choice at a time, so that no event is chosen twice. */
  const choosing = new Set<string>();
  return defineRoute({
    method: "POST",
    path: "/webhooks/{webhook_id}/resend",
    operationId: "resendWebhookDeliveries",
    tag: WEBHOOK_TAG,
    summary: "Makes one more attempt of each delivery that matches, oldest first.",
    description:
      "It is the manual retry for many: each matching delivery gets one attempt with the same event, at the webhook's present URL, also if the webhook is " +
      "disabled. The deliveries are chosen now, and the attempts go on behind the answer, also after a restart of the service. A delivery then has the " +
      "state of its latest attempt. One resend of a webhook runs at a time.",
    pathParameters: { webhook_id: WEBHOOK_ID },
    body: {
      name: "ResendRequest",
      description: "Which deliveries.",
      schema: WEBHOOK_REQUEST_SCHEMAS.ResendRequest,
      validate: validators.ResendRequest,
      furtherFaults: resendRequestFaults,
    },
    responses: { 202: jsonResponse("ResendResponse", "The resend, which has begun.") },
    errors: ["resend_in_progress"],
    async handle(asked) {
      const webhook = requireWebhook(view, asked.params.webhook_id as string);
      const body = asked.body as ResendBody;
      const most = LIMITS.resendDeliveries;
      const gone = asked.gone();
      const giveWay = (): Promise<void> | undefined => {
        if (gone.aborted) throw new ServiceError("unavailable", "nobody waits for the answer", {});
        return slices.giveWay();
      };
      if (choosing.has(webhook.id)) {
        throw new ServiceError("resend_in_progress", "another resend of this webhook is about to begin", {});
      }
      choosing.add(webhook.id);
      try {
        // What another resend has sent meanwhile must not be chosen.
        await write({ op: "require_no_resend", webhookId: webhook.id });
        const { count, items } = await view.chooseDeliveries(webhook, resendQuery(body), most, giveWay);
        if (count === 0) throw badChoice("chosen so that at least one delivery matches");
        if (count > most) throw badChoice(`chosen so that at most ${most} deliveries match`);
        const perSecond = body.per_second ?? LIMITS.resendPerSecond.default;
        const id = await write({ op: "resend", webhookId: webhook.id, perSecond, items });
        return jsonReply({ resend_id: id, deliveries: count }, 202);
      } finally {
        choosing.delete(webhook.id);
      }
    },
  });
}

/** The filters choose together, so the error names no field: any of them may be the wrong one. */
function badChoice(allowed: string): ServiceError {
  const message = `since, until, statuses and event_names must be ${allowed}`;
  return new ServiceError("invalid_parameter", message, { field: "", in: "body", value: null, allowed });
}

function figuresRoute(view: View, write: WriteWebhook): Route {
  return defineRoute({
    path: "/webhooks/{webhook_id}/resends/{resend_id}",
    operationId: "getWebhookResend",
    tag: WEBHOOK_TAG,
    summary: "What came of a resend until now.",
    pathParameters: { webhook_id: WEBHOOK_ID, resend_id: RESEND_ID },
    responses: { 200: jsonResponse("ResendStateResponse", "The resend.") },
    errors: ["read_only_hub"],
    async handle({ params }) {
      const [webhookId, resendId] = [params.webhook_id as string, params.resend_id as string];
      if (!view.webhooks.everExisted(webhookId)) throw unknownId("webhook", webhookId);
      return jsonReply(JSON.parse(await write({ op: "resend_figures", webhookId, resendId })));
    },
  });
}

function cancelRoute(view: View, write: WriteWebhook): Route {
  return defineRoute({
    method: "DELETE",
    path: "/webhooks/{webhook_id}/resends/{resend_id}",
    operationId: "cancelWebhookResend",
    tag: WEBHOOK_TAG,
    summary: "Ends a resend: no further attempt of it begins.",
    pathParameters: { webhook_id: WEBHOOK_ID, resend_id: RESEND_ID },
    description:
      "Attempts that have begun, or wait for their turn (eight at most), still end. The figures are those of this moment.",
    responses: { 204: { description: "The resend has ended. One that had ended before stays as it was." } },
    async handle({ params }) {
      const [webhookId, resendId] = [params.webhook_id as string, params.resend_id as string];
      if (!view.webhooks.everExisted(webhookId)) throw unknownId("webhook", webhookId);
      await write({ op: "cancel_resend", webhookId, resendId });
      return { status: 204, body: null };
    },
  });
}
