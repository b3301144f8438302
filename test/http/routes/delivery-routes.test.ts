import t from "tap";
import { deliveryRoutes } from "../../../http/routes/webhooks/delivery-routes.js";

/** What a retry of a delivery in this status does, in order. */
async function retried(status: string) {
  const done: unknown[] = [];
  const view = { deliveries: { row: () => ({ status, webhookId: "w" }) } };
  const documents = {
    detail: async (...asked: unknown[]) => void done.push("detail", ...asked),
    read: async (id: string) => void done.push("read", id),
  };
  const write = async ({ op }: { op: string }, gone: unknown) => void done.push(op, gone);
  const routes = deliveryRoutes(view as never, documents as never, write as never);
  const asked = { params: { delivery_id: "d" }, gone: () => "gone" };
  await routes.find(({ operationId }) => operationId === "retryWebhookDelivery")?.handle(asked as never);
  return { done, asked };
}

t.test("a retry of a delivered delivery is answered as any read: with others, within the bound", async (t) => {
  const { done, asked } = await retried("delivered");
  t.strictSame(done, ["detail", "d", asked]);
});

t.test("after the attempt of a retry, the answer waits for no other", async (t) => {
  t.strictSame((await retried("failed")).done, ["retry", "gone", "read", "d"]);
});
