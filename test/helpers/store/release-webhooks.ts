import { setTimeout as pause } from "node:timers/promises";
import { startReceiver } from "../webhooks/receiver.js";

/** Of the webhook `mes`, which signs with both at the end, and with the signing key. */
export const RELEASE_SECRETS = ["whsec_b2xkb2xkb2xk", "whsec_bmV3bmV3bmV3"] as const;
const SINCE = "2020-01-01T00:00:00Z";

interface Webhook {
  id: string;
  name: string;
  deliveries_24h?: unknown;
  previous_secret_expires_at?: unknown;
}

export interface WebhookAnswers {
  /** Their settings. */
  webhooks: Webhook[];
  /** Of each webhook, by its id. */
  deliveries: Record<string, unknown[]>;
  /** By their path. */
  resends: Record<string, unknown>;
  signingKey: unknown;
}

/** What one service answers. */
export class ReleaseService {
  readonly #url: string;

  constructor(port: number) {
    this.#url = `http://127.0.0.1:${port}`;
  }

  async ask<T = unknown>(method: string, path: string, body?: unknown): Promise<T> {
    const json = { "content-type": "application/json" };
    const answer = await fetch(`${this.#url}${path}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body), headers: json }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return (text === "" ? null : JSON.parse(text)) as T;
  }

  /** Asks until it holds. */
  async until<T>(path: string, holds: (answer: T) => boolean): Promise<T> {
    for (;;) {
      const answer = await this.ask<T>("GET", path);
      if (holds(answer)) return answer;
      await pause(20);
    }
  }

  /** @param resends their paths */
  async webhookAnswers(resends: readonly string[]): Promise<WebhookAnswers> {
    const answers: WebhookAnswers = {
      webhooks: [],
      deliveries: {},
      resends: {},
      signingKey: await this.ask("GET", "/webhooks/signing-key"),
    };
    for (const webhook of await this.ask<Webhook[]>("GET", "/webhooks")) {
      // These two depend on when one asks.
      const { deliveries_24h: _, previous_secret_expires_at: __, ...settings } = webhook;
      answers.webhooks.push(settings);
      answers.deliveries[webhook.id] = await this.ask<unknown[]>("GET", `/webhooks/${webhook.id}/deliveries?limit=200`);
    }
    for (const path of resends) answers.resends[path] = await this.ask("GET", path);
    return answers;
  }
}

/**
 * Webhooks as a store can hold them: `mes`, which failed and was resent to, with two secrets, a header and Ed25519; and `new`, which got what it had
 * missed. @param work makes runs that end @returns the paths of the resends
 */
export async function makeWebhooks(service: ReleaseService, work: () => Promise<number>): Promise<string[]> {
  let status = 503;
  const receiver = await startReceiver((_, response) => response.writeHead(status).end());
  const paths: string[] = [];
  const resend = async (id: string, body: object, isCancelled = false): Promise<void> => {
    const { resend_id } = await service.ask<{ resend_id: string }>("POST", `/webhooks/${id}/resend`, {
      since: SINCE,
      ...body,
    });
    const path = `/webhooks/${id}/resends/${resend_id}`;
    if (isCancelled) await service.ask("DELETE", path);
    await service.until<{ state: string }>(path, ({ state }) => state !== "running");
    paths.push(path);
  };
  try {
    const common = { url: receiver.url, subscribed_events: ["ProgramCompleted"], max_retries: 0 };
    const mes = await service.ask<Webhook>("POST", "/webhooks", {
      ...{ ...common, name: "mes", secret: RELEASE_SECRETS[0], signing: "ed25519" },
      headers: { "X-Gateway-Key": "of the gateway" },
    });
    const count = await work();
    const isSettled = (page: { status: string }[]) =>
      page.length === count && page.every((one) => one.status !== "pending");
    await service.until(`/webhooks/${mes.id}/deliveries`, isSettled);
    const week = 7 * 86_400;
    await service.ask("POST", `/webhooks/${mes.id}/rotate-secret`, {
      secret: RELEASE_SECRETS[1],
      overlap_seconds: week,
    });
    status = 204;
    await resend(mes.id, { per_second: 1000 });
    await resend(mes.id, { statuses: ["delivered"], per_second: 1 }, true);
    const fresh = await service.ask<Webhook>("POST", "/webhooks", { ...common, name: "new" });
    await resend(fresh.id, { statuses: ["missed"], per_second: 1000 });
    for (const { id } of [mes, fresh]) await service.until(`/webhooks/${id}/deliveries`, isSettled);
    return paths;
  } finally {
    await receiver.close();
  }
}
