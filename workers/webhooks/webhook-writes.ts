import { LIMITS } from "../../core/limits.js";
import { ServiceError, unknownId } from "../../core/service-errors.js";
import type { Webhook } from "../../core/webhook/webhook.js";
import type { WebhookChange } from "../../core/webhook/webhook-change.js";
import type { CreateWebhook, UpdateWebhook } from "../../core/webhook/webhook-request.js";
import type { WebhookState } from "./deliveries/webhook-state.js";

export interface WebhookWritesOptions {
  state: WebhookState;
  /** The service clock. */
  tick(): number;
  newId(timeUs: number): string;
}

/** Decides what follows from clients' requests about webhooks. Gives the change to record, or undefined if nothing changes. */
export class WebhookWrites {
  readonly #options: WebhookWritesOptions;

  constructor(options: WebhookWritesOptions) {
    this.#options = options;
  }

  /** @throws ServiceError if there are already `LIMITS.webhooks` */
  create({ settings, secret }: CreateWebhook): Extract<WebhookChange, { kind: "webhook_put" }> {
    const { state, tick, newId } = this.#options;
    if (state.size >= LIMITS.webhooks) {
      throw new ServiceError("invalid_parameter", `there are already ${LIMITS.webhooks} webhooks, the most allowed`, {
        field: "",
        in: "body",
        value: null,
        allowed: `at most ${LIMITS.webhooks} webhooks`,
      });
    }
    const timeUs = tick();
    const webhook: Webhook = {
      ...settings,
      id: newId(timeUs),
      hasSecret: secret !== null,
      createdAtUs: timeUs,
      updatedAtUs: timeUs,
    };
    return { kind: "webhook_put", webhook, secret };
  }

  /** @throws ServiceError webhook_not_found */
  update(id: string, { settings, secret }: UpdateWebhook): WebhookChange | undefined {
    const { state, tick } = this.#options;
    const kept = state.get(id);
    if (kept === undefined) throw unknownId("webhook", id);
    const next = secret === undefined ? kept.secret : secret;
    const changed: Webhook = { ...kept.webhook, ...settings, hasSecret: next !== null };
    if (next === kept.secret && JSON.stringify(changed) === JSON.stringify(kept.webhook)) return undefined;
    return { kind: "webhook_put", webhook: { ...changed, updatedAtUs: tick() }, secret: next };
  }

  /** A second deletion changes nothing. @throws ServiceError webhook_not_found */
  delete(id: string): WebhookChange | undefined {
    const { state } = this.#options;
    const kept = state.get(id);
    if (kept !== undefined) return { kind: "webhook_deleted", webhook: { id, name: kept.webhook.name } };
    if (state.isDeleted(id)) return undefined;
    throw unknownId("webhook", id);
  }
}
