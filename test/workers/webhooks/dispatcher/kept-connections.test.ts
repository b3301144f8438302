import type { Socket } from "node:net";
import t, { type Test } from "tap";
import { createRandom } from "../../../../core/random.js";
import { resetConnection } from "../../../helpers/http/reset-connection.js";
import { until } from "../../../helpers/until.js";
import { startTestDispatcher } from "../../../helpers/webhooks/dispatcher-harness.js";
import { rawReceiver } from "../../../helpers/webhooks/raw-receiver.js";

const ANSWER = "HTTP/1.1 204 No Content\r\n\r\n";

/**
 * A receiver whose connections do as told with each request; it counts requests whose last bytes have come, and connections.
 * @param onRequest `nth` counts the requests of that connection, from 1
 */
async function countingReceiver(t: Test, onRequest: (socket: Socket, nth: number) => void) {
  const seen = { connections: 0, requests: 0, ids: new Set<string>() };
  const url = await rawReceiver(t, (socket) => {
    seen.connections++;
    let nth = 0;
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      // Every body of the harness ends like this.
      if (!text.endsWith("}")) return;
      seen.requests++;
      seen.ids.add(/webhook-id: (\S+)/.exec(text)?.[1] ?? "");
      text = "";
      onRequest(socket, ++nth);
    });
  });
  return { url, seen };
}

t.test("connections are kept between deliveries", async (t) => {
  const { url, seen } = await countingReceiver(t, (socket) => socket.write(ANSWER));
  const { deliver, end } = startTestDispatcher(t);
  for (let nth = 0; nth < 20; nth++) t.match(await end(deliver(url)), { error: null });
  t.same([seen.connections, seen.requests], [1, 20]);
});

t.test(
  "a kept connection that closes instead of an answer: posted once more over a new one, in the same attempt",
  async (t) => {
    for (const close of [(socket: Socket) => socket.end(), (socket: Socket) => resetConnection(socket)]) {
      const { url, seen } = await countingReceiver(t, (socket, nth) =>
        nth === 1 ? socket.write(ANSWER) : close(socket),
      );
      const { deliver, end } = startTestDispatcher(t);
      for (let nth = 0; nth < 5; nth++) {
        t.match(await end(deliver(url)), { attemptNumber: 1, statusCode: 204, error: null });
      }
      // The second request of each connection is repeated over a new one, as its first.
      t.same([seen.connections, seen.requests, seen.ids.size], [5, 9, 5]);
    }
  },
);

t.test(
  "a new connection that closes instead of an answer is a failed attempt, and so is one that the repetition closes",
  async (t) => {
    let isUp = true;
    const { url, seen } = await countingReceiver(t, (socket) => (isUp ? socket.write(ANSWER) : socket.end()));
    const { deliver, end } = startTestDispatcher(t);
    await end(deliver(url));
    isUp = false;
    const error = "the connection was closed before an answer came (UND_ERR_SOCKET)";
    t.match(await end(deliver(url)), { statusCode: null, error });
    t.same([seen.connections, seen.requests], [2, 3], "once more, and not again");
    t.match(await end(deliver(url)), { error });
    t.same([seen.connections, seen.requests], [3, 4], "a new connection is not repeated");
  },
);

t.test("an answer that has begun is not asked for again", async (t) => {
  for (const [status, error] of [
    ["102 Processing", /closed before an answer/],
    // undici takes neither of these two.
    ["100 Continue", /answered 100/],
    ["101 Switching\r\nConnection: Upgrade\r\nUpgrade: x", /another protocol/],
  ] as const) {
    const { url, seen } = await countingReceiver(t, (socket, nth) => {
      if (nth === 1) socket.write(ANSWER);
      else socket.end(`HTTP/1.1 ${status}\r\n\r\n`);
    });
    const { deliver, end } = startTestDispatcher(t);
    await end(deliver(url));
    t.match(await end(deliver(url)), { statusCode: null, error });
    t.equal(seen.requests, 2, status);
  }
});

t.test("the time-out bounds the attempt with its repetition", async (t) => {
  const { url, seen } = await countingReceiver(t, (socket, nth) => {
    if (nth > 1) socket.end();
    else if (seen.requests === 1) socket.write(ANSWER);
  });
  const { deliver, end } = startTestDispatcher(t);
  await end(deliver(url));
  t.match(await end(deliver(url, { timeoutMs: 300 })), { error: "no answer within 0.3 s" });
  t.equal(seen.requests, 3);
});

t.test(
  "a receiver that closes at a random moment after each answer misses nothing, with one attempt only",
  async (t) => {
    const seed = Number(process.env.TEST_SEED ?? 20261122);
    t.comment(`TEST_SEED=${seed}`);
    const random = createRandom(seed);
    const { url, seen } = await countingReceiver(t, (socket) => {
      socket.write(ANSWER);
      const close = (): unknown => (random.chance(0.5) ? socket.end() : resetConnection(socket));
      const turns = random.integer(0, 12);
      const wait = (left: number): void => {
        if (left === 0) close();
        else setImmediate(wait, left - 1);
      };
      wait(turns);
    });
    const { deliver, end } = startTestDispatcher(t);
    const [count, atATime] = [600, 4];
    let made = 0;
    const slot = async (): Promise<void> => {
      while (made++ < count) {
        const attempt = await end(deliver(url));
        if (attempt.error === null) continue;
        t.fail(`seed ${seed}: ${JSON.stringify(attempt)}`);
        return;
      }
    };
    await Promise.all(Array.from({ length: atATime }, slot));
    t.equal(seen.ids.size, count);
    t.comment(`${count} deliveries: ${seen.requests} requests over ${seen.connections} connections`);
  },
);

t.test("idle connections are closed when the receiver's hint is over, and forgotten", async (t) => {
  let closed = 0;
  const { url, seen } = await countingReceiver(t, (socket) => {
    socket.on("close", () => closed++);
    // Too short to be used again: undici closes it at once.
    socket.write("HTTP/1.1 204 No Content\r\nKeep-Alive: timeout=1\r\n\r\n");
  });
  const { deliver, end } = startTestDispatcher(t);
  for (let nth = 0; nth < 3; nth++) await end(deliver(url));
  t.same([seen.connections, seen.requests], [3, 3]);
  await until("three connections are closed", () => closed >= 3);
});
