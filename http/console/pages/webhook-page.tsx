export function WebhookPage({ webhookId }: { webhookId: string }) {
  return <h1>Webhook {webhookId}</h1>;
}
