import { join } from "node:path";
import t, { type Test } from "tap";
import { createRandom } from "../../../core/random.js";
import { type MessageRefusedError, ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { FakeLinkServer } from "../../helpers/link/fake-link-server.js";
import { listOf } from "../../helpers/list-of.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

const seed = Number(process.env.TEST_SEED ?? 20261120);
t.comment(`TEST_SEED=${seed}`);

const quickly = { reconnectFirstMs: 1, reconnectLongestMs: 5, producer: "test-1" };

function socketPath(t: Test): string {
  const directory = temporaryDirectory(t);
  return join(directory, "cell.sock");
}

const refusal = { code: "not_found", message: "no such run", params: { path: "run_id" } };
const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "acknowledged",
    (error: MessageRefusedError) => error.code,
  );

t.test("each message takes effect once and gets its own answer, over a link that breaks at random bytes", async (t) => {
  const random = createRandom(seed);
  let breaks = 60;
  const server = new FakeLinkServer({
    breakAfterBytes: () => (breaks-- > 0 ? random.integer(1, 30_000) : undefined),
    decide: ({ body }) => (Number(body.n) % 7 === 3 ? refusal : undefined),
    ackNow: () => random.chance(0.1),
  });
  const path = socketPath(t);
  const client = new ProducerClient({ ...quickly, address: { path }, unacknowledgedLimitCount: 50 });
  t.teardown(() => client.destroy());
  // The service comes up only after the client has failed to connect.
  await server.listenFor(t, path);
  const count = 1_000;
  const payloads = Array.from({ length: count }, () => random.bytes(random.pick([0, 10, 1_000, 20_000])));
  const answers: Promise<string>[] = [];
  const acking = setInterval(() => server.ackAll(), 5);
  t.teardown(() => clearInterval(acking));
  for (let n = 0; n < count; n++) {
    const message = await client.send({ type: "event.add", n }, payloads[n]);
    answers.push(codeOf(message.acknowledged));
    if (client.unacknowledgedCount > 50) t.fail(`${client.unacknowledgedCount} unacknowledged`);
  }
  await client.close();
  const expected = Array.from({ length: count }, (_, n) => (n % 7 === 3 ? "not_found" : "acknowledged"));
  t.same(await Promise.all(answers), expected);
  t.same(
    server.messages.map(({ body }) => body.n),
    Array.from({ length: count }, (_, n) => n).filter((n) => n % 7 !== 3),
  );
  t.ok(server.messages.every(({ body, payload }) => Buffer.from(payloads[Number(body.n)] ?? []).equals(payload)));
  t.same(server.faults, []);
  t.ok(server.connections > 30, `${server.connections} connections, ${server.resends} resent behind a lost answer`);
  t.ok(server.resends > 0);
});

t.test("send waits for room in bytes; a message above the limit passes alone", async (t) => {
  const server = new FakeLinkServer({ ackNow: () => false });
  const path = socketPath(t);
  await server.listenFor(t, path);
  const client = new ProducerClient({ ...quickly, address: { path }, unacknowledgedLimitBytes: 1_000 });
  t.teardown(() => client.destroy());
  const first = await client.send({ type: "x" }, new Uint8Array(5_000));
  const entered: number[] = [];
  const later = [1, 2, 3].map((n) => client.send({ type: "x", n }).then(() => entered.push(n)));
  await client.ping();
  t.same(entered, [], "no room before the ack");
  server.ackAll();
  await first.acknowledged;
  await Promise.all(later);
  t.same(entered, [1, 2, 3], "then in the order of the calls");
  t.equal(client.unacknowledgedCount, 3);
  const closed = client.close();
  await t.rejects(client.send({ type: "x" }), { code: "closed" });
  // close waits until the service has everything and says so.
  const acking = setInterval(() => server.ackAll(), 1);
  await closed;
  clearInterval(acking);
  t.same(
    server.messages.slice(1).map(({ body }) => body.n),
    [1, 2, 3],
  );
});

t.test("goes on after what an earlier process sent, with run ids above the service's last", async (t) => {
  const server = new FakeLinkServer();
  server.setCommitted("test-1", 41);
  server.lastRunId = "ffffffff-0000-7000-8000-000000000000";
  const path = socketPath(t);
  await server.listenFor(t, path);
  const client = new ProducerClient({ ...quickly, address: { path }, token: "secret" });
  const early = client.deliver({ type: "x" });
  await client.welcomed();
  const first = client.nextRunId();
  t.ok(first > server.lastRunId, "although the clock is behind");
  t.ok(client.nextRunId() > first);
  await early;
  await client.close();
  t.match(server.hellos, listOf({ protocol: 1, producer: "test-1", instance: /^[0-9a-f-]{36}$/, token: "secret" }));
  t.equal(server.messages[0]?.sequence, 42, "sent before the welcome, numbered after it");
});

t.test("id_out_of_order raises the next run id", async (t) => {
  const highest = "fffffff0-0000-7000-8000-000000000000";
  const server = new FakeLinkServer({
    decide: () => ({ code: "id_out_of_order", message: "above", params: { last_run_id: highest } }),
  });
  const path = socketPath(t);
  await server.listenFor(t, path);
  const refused: string[] = [];
  const client = new ProducerClient({ ...quickly, address: { path }, onRefused: ({ code }) => refused.push(code) });
  await t.rejects(client.deliver({ type: "run.create" }), {
    code: "id_out_of_order",
    params: { last_run_id: highest },
  });
  t.ok(client.nextRunId() > highest);
  t.same(refused, ["id_out_of_order"]);
  await client.close();
});

t.test("a hello that is refused ends the client, but not unavailable", async (t) => {
  const path = socketPath(t);
  const answers = ["unavailable", "unavailable", undefined, "unauthorized"];
  const server = new FakeLinkServer({
    refuseHello() {
      const code = answers.shift();
      return code === undefined ? undefined : { code, message: "no", params: {} };
    },
  });
  await server.listenFor(t, path);
  const reasons: string[] = [];
  const onDisconnected = (reason: string) => reasons.push(reason);
  const client = new ProducerClient({ ...quickly, address: { path }, onDisconnected });
  await client.deliver({ type: "x" });
  await client.close();
  t.match(reasons.join(), /unavailable/);

  const second = new ProducerClient({ ...quickly, address: { path }, producer: "test-2" });
  await t.rejects(second.welcomed(), { code: "unauthorized" });
  await t.rejects(second.send({ type: "x" }), { code: "unauthorized" });
});

t.test(
  "a sequence number that another instance used is no reason to end: the messages come again with others",
  async (t) => {
    for (const code of ["sequence_taken", "sequence_gap"]) {
      const path = socketPath(t);
      let refused: string[] = [];
      const server = new FakeLinkServer({
        refuseMessage() {
          if (refused.length > 0) return undefined;
          refused = [code];
          server.setCommitted("test-1", 7);
          return { code, message: "no", params: {} };
        },
      });
      await server.listenFor(t, path);
      const client = new ProducerClient({ ...quickly, address: { path } });
      await client.deliver({ type: "x" });
      await client.close();
      t.match(server.messages, listOf({ sequence: 8, body: { type: "x" } }), code);
      t.same([server.connections, server.faults], [2, []]);
    }
  },
);

t.test("what another sent under the name is never taken for its own", async (t) => {
  const path = socketPath(t);
  const server = new FakeLinkServer({ ackNow: () => false });
  await server.listenFor(t, path);
  const welcomes: number[][] = [];
  let isBack = (): void => {};
  const back = new Promise<void>((resolve) => {
    isBack = resolve;
  });
  const client = new ProducerClient({
    ...quickly,
    address: { path },
    onWelcome: ({ committed, yours }) => {
      welcomes.push([committed, yours]);
      if (welcomes.length === 2) isBack();
    },
  });
  t.teardown(() => client.destroy());
  const answers = [];
  for (const n of [1, 2]) answers.push((await client.send({ type: "x", n })).acknowledged);
  await client.ping();
  // Another client of the same name has sent 3 to 9. This one does not know that, and numbers its next message 3.
  server.setCommitted("test-1", 9);
  answers.push((await client.send({ type: "x", n: 3 })).acknowledged);
  server.breakConnections();
  await back;
  await client.ping();
  server.ackAll();
  await Promise.all(answers);
  t.same(welcomes, [
    [0, 0],
    [9, 2],
  ]);
  t.same(
    server.messages.map(({ sequence, body }) => [sequence, body.n]),
    [
      [1, 1],
      [2, 2],
      [10, 3],
    ],
  );
  t.same(server.faults, []);
  t.equal(server.hellos[0]?.instance, server.hellos[1]?.instance);
});

t.test("two clients with one instance: the one that learns of it ends", async (t) => {
  const path = socketPath(t);
  const server = new FakeLinkServer();
  await server.listenFor(t, path);
  const client = new ProducerClient({ ...quickly, address: { path } });
  await client.deliver({ type: "x" });
  server.setCommitted("test-1", 7);
  server.setInstance("test-1", String(server.hellos[0]?.instance), 7);
  const ended = client.send({ type: "x" }).then(({ acknowledged }) => acknowledged);
  server.breakConnections();
  await t.rejects(Promise.all([ended, client.close()]), { code: "instance_in_use" });
});

t.test("a service that lost acknowledged messages is told apart, and the client goes on after it", async (t) => {
  const server = new FakeLinkServer();
  const path = socketPath(t);
  await server.listenFor(t, path);
  const lost: number[] = [];
  const client = new ProducerClient({
    ...quickly,
    address: { path },
    onWelcome: ({ acknowledgedLost }) => lost.push(acknowledgedLost),
  });
  for (let n = 1; n <= 5; n++) await client.deliver({ type: "x", n });
  server.setCommitted("test-1", 2);
  server.breakConnections();
  await client.deliver({ type: "x", n: 6 });
  await client.close();
  t.same(lost, [0, 3]);
  t.equal(server.messages.at(-1)?.sequence, 3);
  t.same(server.faults, []);
});

t.test("pings when it has nothing to say, so that it is not closed for its silence", async (t) => {
  const server = new FakeLinkServer();
  const path = socketPath(t);
  await server.listenFor(t, path);
  const client = new ProducerClient({ ...quickly, address: { path }, keepAliveMs: 1 });
  await client.ping();
  while (server.pings < 4) await client.ping().then(() => new Promise((resolve) => setImmediate(resolve)));
  t.ok(server.pings >= 4);
  const unanswered = t.rejects(client.ping());
  client.destroy();
  await unanswered;
});
