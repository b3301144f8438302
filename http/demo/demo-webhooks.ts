import type { DemoReceiver, DemoWebhook } from "../../workers/demo-cell/demo-receiver.js";

interface ListedWebhook {
  id: string;
  name: string;
  url: string;
}

/**
 * Registers the demo's receivers by HTTP. Webhooks of an earlier start get the new address and secret, and keep other changes; webhooks of others are
 * not touched.
 * @returns their ids
 * @throws Error if the interface refuses it (API keys, a private certificate)
 */
export async function registerReceivers(base: string, { signed, busy, down }: DemoReceiver): Promise<string[]> {
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
  return [await register(signed), await register(busy), await register(down)];
}

/** Removes the demo's webhooks by HTTP. Rejects with an Error if the interface does not answer. */
export async function removeReceivers(base: string, ids: readonly string[]): Promise<void> {
  for (const id of ids) await fetch(`${base}/webhooks/${id}`, { method: "DELETE" });
}

/** Whether it is the webhook of an earlier start: same name and address, except for the port, which changes with every start. */
function isEarlier(registered: ListedWebhook, webhook: DemoWebhook): boolean {
  const withoutPort = (url: string): string => url.replace(/^(http:\/\/127\.0\.0\.1):\d+\//, "$1/");
  return registered.name === webhook.name && withoutPort(registered.url) === withoutPort(webhook.url);
}
