import type { Webhook } from "../../../core/webhook/webhook.js";
import type { TrackedDelivery } from "./tracked-delivery.js";

/**
 * When the next automatic attempt is due after one that has failed; null if none follows: that was the last one, or the pause would end at
 * or after the window's end.
 */
export function pauseEndMs(
  { delivery, windowEndMs }: Pick<TrackedDelivery, "delivery" | "windowEndMs">,
  attemptsMade: number,
  { maxRetries, retryBackoffSeconds }: Pick<Webhook, "maxRetries" | "retryBackoffSeconds">,
  nowMs: number,
): number | null {
  if (delivery === null || windowEndMs === null) return null;
  const attempts = delivery.eventName === "WebhookTest" ? 1 : 1 + maxRetries;
  const endMs = nowMs + retryBackoffSeconds * 1000;
  return attemptsMade < attempts && endMs < windowEndMs ? endMs : null;
}
