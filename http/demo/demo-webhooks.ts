import type { DemoReceiver, DemoWebhook } from "../../workers/demo-cell/demo-receiver.js";

/** Ids of the demo's webhooks. */
export interface DemoWebhookIds {
  signed: string;
  busy: string;
  down: string;
}

interface ListedWebhook {
  id: string;
  name: string;
  url: string;
}

/**
 * Registers the demo's receivers as a client does. Those of an earlier start get their new address and secret, and keep what else was changed in
 * them; nobody else's webhook is touched.
 * @throws Error where the interface does not take it from here (API keys, a certificate of one's own)
 */
export async function registerReceivers(base: string, receiver: DemoReceiver): Promise<DemoWebhookIds> {
  const send = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const response = await fetch(base + path, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }),
    });
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}`);
    return response.json();
  };
  const registered = (await send("GET", "/webhooks")) as ListedWebhook[];
  const register = async (webhook: DemoWebhook): Promise<string> => {
    const earlier = registered.find((one) => isEarlier(one, webhook));
    const { url, secret } = webhook;
    const answer =
      earlier === undefined
        ? await send("POST", "/webhooks", webhook)
        : await send("PATCH", `/webhooks/${earlier.id}`, { url, secret });
    return (answer as ListedWebhook).id;
  };
  const { signed, busy, down } = receiver;
  return { signed: await register(signed), busy: await register(busy), down: await register(down) };
}

/** Removes them as a client does. Rejects with an Error where the interface does not answer. */
export async function removeReceivers(base: string, { signed, busy, down }: DemoWebhookIds): Promise<void> {
  for (const id of [signed, busy, down]) await fetch(`${base}/webhooks/${id}`, { method: "DELETE" });
}

/** By the name and the address together: a name alone may be somebody else's. Only the port differs from start to start. */
function isEarlier(registered: ListedWebhook, webhook: DemoWebhook): boolean {
  const withoutPort = (url: string): string => url.replace(/^(http:\/\/127\.0\.0\.1):\d+\//, "$1/");
  return registered.name === webhook.name && withoutPort(registered.url) === withoutPort(webhook.url);
}
