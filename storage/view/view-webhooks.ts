import type { Webhook } from "../../core/webhook/webhook.js";
import type { WebhookIndex } from "../records/webhook-record.js";

/** The webhooks of the view, without secrets. Id and name of a deleted one stay, for its deliveries. */
export class ViewWebhooks {
  readonly #webhooks = new Map<string, Webhook>();
  readonly #deletedNames = new Map<string, string>();
  /** At a hub. */
  readonly #cells = new Map<string, string>();
  #renames = 0;

  /** How often the name of any webhook has changed since the store was opened. */
  get renames(): number {
    return this.#renames;
  }

  /** @param cell name of its cell, at a hub */
  apply({ webhook, deleted }: WebhookIndex, cell?: string): void {
    if (cell !== undefined) this.#cells.set((webhook ?? deleted).id, cell);
    if (webhook !== undefined) {
      if (this.name(webhook.id) !== webhook.name) this.#renames++;
      this.#webhooks.set(webhook.id, webhook);
    } else {
      this.#webhooks.delete(deleted.id);
      this.#deletedNames.set(deleted.id, deleted.name);
    }
  }

  /** Undefined when unknown or deleted. */
  get(id: string): Webhook | undefined {
    return this.#webhooks.get(id);
  }

  /** The name of its cell, at a hub. */
  cellOf(id: string): string | undefined {
    return this.#cells.get(id);
  }

  /** True also for a deleted one, whose deliveries stay listed. */
  everExisted(id: string): boolean {
    return this.#webhooks.has(id) || this.#deletedNames.has(id);
  }

  /** The name of a webhook, deleted or not; empty for one that the log has lost. */
  name(id: string): string {
    return this.#webhooks.get(id)?.name ?? this.#deletedNames.get(id) ?? "";
  }

  /** Oldest first. */
  list(): Webhook[] {
    return [...this.#webhooks.values()].sort((a, b) => a.createdAtUs - b.createdAtUs);
  }
}
