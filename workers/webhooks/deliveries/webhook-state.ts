import type { Delivery } from "../../../core/webhook/delivery.js";
import { BegunDelivery } from "../../../core/webhook/emit-run-event.js";
import type { Webhook, WebhookSecrets } from "../../../core/webhook/webhook.js";
import type { WebhookChange } from "../../../core/webhook/webhook-change.js";
import type { IndexedEvent } from "../../../storage/records/event-index.js";
import { decodeWebhookSecrets, type WebhookIndex } from "../../../storage/records/webhook-record.js";

import { ResendStates } from "../resends/resend-states.js";

/** A webhook with what is write-only of it. Only the dispatcher may get that. */
export interface KeptWebhook {
  readonly webhook: Webhook;
  readonly secrets: WebhookSecrets;
}

/**
 * What the recorder knows about webhooks: all of them, with their secrets, and the pending deliveries. It keeps nothing of ended
 * deliveries. A retry gets the stored content of its delivery.
 */
export class WebhookState {
  readonly #webhooks = new Map<string, KeptWebhook>();
  readonly #deleted = new Set<string>();
  #pending = new Map<string, Delivery | BegunDelivery>();
  readonly resends = new ResendStates();

  get(id: string): KeptWebhook | undefined {
    return this.#webhooks.get(id);
  }

  isDeleted(id: string): boolean {
    return this.#deleted.has(id);
  }

  get size(): number {
    return this.#webhooks.size;
  }

  *webhooks(): Iterable<Webhook> {
    for (const { webhook } of this.#webhooks.values()) yield webhook;
  }

  /** Pending deliveries, oldest first. */
  *pending(): Iterable<Delivery> {
    for (const one of this.#pending.values()) yield one instanceof BegunDelivery ? one.toDelivery() : one;
  }

  /** Pending deliveries in the form in which they are kept. */
  keptPendings(): Iterable<Delivery | BegunDelivery> {
    return this.#pending.values();
  }

  pendingDelivery(deliveryId: string): Delivery | undefined {
    const kept = this.#pending.get(deliveryId);
    return kept instanceof BegunDelivery ? kept.toDelivery() : kept;
  }

  isPending(deliveryId: string): boolean {
    return this.#pending.has(deliveryId);
  }

  apply(change: WebhookChange): void {
    switch (change.kind) {
      case "webhook_put":
        this.#put(change.webhook, change.secrets);
        return;
      case "webhook_deleted":
        this.#delete(change.webhook.id);
        return;
      case "delivery_put":
        this.putDelivery(change.delivery);
        return;
      case "resend_put":
        this.resends.put(change.resend, change.items);
        return;
    }
  }

  /** Adds the deliveries of these events of a run, except those that had ended when the record was written. */
  begin(runId: string, events: readonly IndexedEvent[]): void {
    for (const { id, name, timeUs, deliveries } of events) {
      // Only these fields: the event itself holds its payload.
      const event = { id, name, timeUs, runId };
      for (const delivery of deliveries) {
        if (delivery.settled === true || this.#pending.has(delivery.id)) continue;
        this.#pending.set(delivery.id, new BegunDelivery(delivery, event));
      }
    }
  }

  /** Applies a webhook's record that was read from the log. @throws RecordDecodeError */
  replay({ webhook, deleted }: WebhookIndex, body: Uint8Array): void {
    if (webhook !== undefined) this.#put(webhook, decodeWebhookSecrets(body));
    else this.#delete(deleted.id);
  }

  /** Puts pending deliveries in order once the log was read: a hint file may give their records in another order than they began. */
  finishReplay(): void {
    this.#pending = new Map([...this.#pending].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #put(webhook: Webhook, secrets: WebhookSecrets): void {
    this.#webhooks.set(webhook.id, { webhook, secrets });
  }

  #delete(id: string): void {
    this.#webhooks.delete(id);
    this.#deleted.add(id);
  }

  putDelivery(delivery: Delivery): void {
    if (delivery.status === "pending") this.#pending.set(delivery.id, delivery);
    else this.#pending.delete(delivery.id);
    this.resends.noted(delivery);
  }
}
