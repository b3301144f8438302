import { once } from "node:events";
import { connect } from "node:net";
import t from "tap";
import { signatureHeaders } from "../../../core/webhook/webhook-signature.js";
import { startDemoReceiver } from "../../../workers/demo-cell/demo-receiver.js";
import { signedBy } from "../../helpers/webhooks/webhook-fixtures.js";

t.test("closing ends what is open", async (t) => {
  const receiver = await startDemoReceiver();
  const { port, pathname } = new URL(receiver.busy.url);
  const idle = connect(Number(port), "127.0.0.1");
  idle.on("error", () => {});
  idle.write(`POST ${pathname} HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}`);
  await once(idle, "data");
  receiver.close();
  await once(idle, "close");
  t.pass("the connection is closed");
});

t.test("a wrong signature is refused; busy takes the second attempt of an event, down the fifth", async (t) => {
  const receiver = await startDemoReceiver();
  t.teardown(() => receiver.close());
  const post = async (url: string, headers: Record<string, string>) =>
    (await fetch(url, { method: "POST", body: "{}", headers })).status;
  const signed = (secret: string) =>
    signatureHeaders(signedBy(secret), "one", Math.floor(Date.now() / 1000), Buffer.from("{}"));
  t.equal(await post(receiver.signed.url, signed(String(receiver.signed.secret))), 204);
  t.equal(await post(receiver.signed.url, signed("another")), 401);
  t.equal(await post(receiver.signed.url, {}), 401);
  const attempts = async (url: string, event: string, count: number): Promise<number[]> => {
    const statuses: number[] = [];
    for (let n = 0; n < count; n++) statuses.push(await post(url, { "webhook-id": event }));
    return statuses;
  };
  t.same(await attempts(receiver.busy.url, "one", 3), [503, 204, 204]);
  t.same(await attempts(receiver.busy.url, "two", 2), [503, 204], "each event for itself");
  t.same(await attempts(receiver.down.url, "one", 5), [503, 503, 503, 503, 204]);
});
