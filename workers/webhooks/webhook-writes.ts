import { LIMITS } from "../../core/limits.js";
import { ServiceError, unknownId } from "../../core/service-errors.js";
import { formatTimeUs } from "../../core/timestamps.js";
import type { CustomHeader, Webhook, WebhookSecrets } from "../../core/webhook/webhook.js";
import type { WebhookChange } from "../../core/webhook/webhook-change.js";
import type { CreateWebhook, RotateSecret, UpdateWebhook } from "../../core/webhook/webhook-request.js";
import type { KeptWebhook, WebhookState } from "./deliveries/webhook-state.js";

type WebhookPut = Extract<WebhookChange, { kind: "webhook_put" }>;

export interface WebhookWritesOptions {
  state: WebhookState;
  /** The service clock. */
  tick(): number;
  /** The machine's clock: secrets end by it, as people read it. */
  wallUs(): number;
  newId(timeUs: number): string;
}

/** Decides what follows from clients' requests about webhooks. Gives the change to record, or undefined if nothing changes. */
export class WebhookWrites {
  readonly #options: WebhookWritesOptions;

  constructor(options: WebhookWritesOptions) {
    this.#options = options;
  }

  /** @throws ServiceError if there are already `LIMITS.webhooks` */
  create({ settings, secret, headers }: CreateWebhook): WebhookPut {
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
      previousSecretExpiresAtUs: null,
      headerNames: namesOf(headers),
      createdAtUs: timeUs,
      updatedAtUs: timeUs,
    };
    return { kind: "webhook_put", webhook, secrets: { secret, previousSecret: null, headers } };
  }

  /** A new secret ends an overlap of two secrets. @throws ServiceError webhook_not_found */
  update(id: string, { settings, secret, headers }: UpdateWebhook): WebhookChange | undefined {
    const kept = this.#kept(id);
    const { previousSecretExpiresAtUs } = kept.webhook;
    const secrets: WebhookSecrets = {
      ...(secret === undefined ? kept.secrets : { secret, previousSecret: null }),
      headers: headers ?? kept.secrets.headers,
    };
    const changed: Webhook = {
      ...{ ...kept.webhook, ...settings, hasSecret: secrets.secret !== null, headerNames: namesOf(secrets.headers) },
      previousSecretExpiresAtUs: secret === undefined ? previousSecretExpiresAtUs : null,
    };
    const isSame = JSON.stringify([changed, secrets]) === JSON.stringify([kept.webhook, kept.secrets]);
    return isSame ? undefined : this.#put(changed, secrets);
  }

  /**
   * The present secret signs beside the new one until the overlap ends. If the new one is the present one already, as after an answer that was lost,
   * the one before it keeps signing instead.
   *
   * @throws ServiceError webhook_not_found, rotation_in_progress
   */
  rotateSecret(id: string, { secret, overlapSeconds, force }: RotateSecret): WebhookPut {
    const { webhook, secrets } = this.#kept(id);
    const wallUs = Math.floor(this.#options.wallUs());
    const { previousSecretExpiresAtUs: endsAtUs } = webhook;
    const isOverlapping = endsAtUs !== null && wallUs < endsAtUs;
    if (isOverlapping && !force) {
      throw new ServiceError("rotation_in_progress", `two secrets overlap until ${formatTimeUs(endsAtUs)}`, {
        field: "force",
        in: "body",
        value: false,
        allowed: "true, to end the secret before the present one at once",
        previous_secret_expires_at: formatTimeUs(endsAtUs),
      });
    }
    const before = secret === secrets.secret ? (isOverlapping ? secrets.previousSecret : null) : secrets.secret;
    const previousSecret = overlapSeconds === 0 ? null : before;
    const previousSecretExpiresAtUs = previousSecret === null ? null : wallUs + overlapSeconds * 1_000_000;
    return this.#put(
      { ...webhook, hasSecret: true, previousSecretExpiresAtUs },
      { ...secrets, secret, previousSecret },
    );
  }

  /** The record of a changed webhook. A secret whose time is over is not written again. */
  #put(webhook: Webhook, secrets: WebhookSecrets): WebhookPut {
    const { tick, wallUs } = this.#options;
    const { previousSecretExpiresAtUs: endsAtUs } = webhook;
    const isOver = endsAtUs !== null && endsAtUs <= wallUs();
    const updated = { ...webhook, ...(isOver && { previousSecretExpiresAtUs: null }), updatedAtUs: tick() };
    return { kind: "webhook_put", webhook: updated, secrets: isOver ? { ...secrets, previousSecret: null } : secrets };
  }

  /** @throws ServiceError webhook_not_found */
  #kept(id: string): KeptWebhook {
    const kept = this.#options.state.get(id);
    if (kept === undefined) throw unknownId("webhook", id);
    return kept;
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

function namesOf(headers: readonly CustomHeader[]): string[] {
  return headers.map(([name]) => name);
}
