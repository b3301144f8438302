import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, TLSSocket } from "node:tls";
import t, { type Test } from "tap";
import { createRandom } from "../../../../core/random.js";
import { resetConnection } from "../../../helpers/http/reset-connection.js";
import { RECEIVER_CERTIFICATE, RECEIVER_PRIVATE_KEY, TEST_AUTHORITY } from "../../../helpers/http/test-authority.js";
import { PAYLOAD, startTestDispatcher } from "../../../helpers/webhooks/dispatcher-harness.js";

const MB = 1_000_000;
/** More than the system buffers for a connection. */
const LARGE = Buffer.alloc(11 * MB, "x");

type Protocol = "http" | "https";

/** A receiver that is told of every connection once it is made, and of the first bytes of each of its requests. */
async function receiver(t: Test, protocol: Protocol, onRequest: (socket: Socket, nth: number) => void) {
  const sockets = new Set<Socket>();
  const seen = { connections: 0, requests: 0 };
  const onConnection = (socket: Socket): void => {
    seen.connections++;
    let nth = 0;
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      if (!chunk.toString("latin1").startsWith("POST ")) return;
      seen.requests++;
      onRequest(socket, ++nth);
    });
  };
  const certificate = { cert: RECEIVER_CERTIFICATE, key: RECEIVER_PRIVATE_KEY };
  const server: Server = protocol === "https" ? createTlsServer(certificate, onConnection) : createServer(onConnection);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  });
  return { url: `${protocol}://127.0.0.1:${(server.address() as AddressInfo).port}/`, seen };
}

const CLOSES: Record<string, (socket: Socket) => void> = {
  "closes with most of the request unread": (socket) => socket.destroySoon(),
  // TLS has no reset of its own; the system resets a connection that is closed with bytes unread.
  resets: (socket) => (socket instanceof TLSSocket ? socket.destroy() : resetConnection(socket)),
};

/** Answers at once, and ends the connection when the system has taken the answer. */
function answerAndClose(socket: Socket, head: string, close: (socket: Socket) => void): void {
  socket.pause();
  socket.write(`HTTP/1.1 ${head}\r\n\r\n`, () => close(socket));
}

for (const protocol of ["http", "https"] as const) {
  t.test(`${protocol}: the status of an answer that comes before the body was taken is the attempt's`, async (t) => {
    const { deliver, end } = startTestDispatcher(t, { extraCa: TEST_AUTHORITY });
    for (const [how, close] of Object.entries(CLOSES)) {
      for (const [head, statusCode] of [
        ["413 Content Too Large\r\nConnection: close\r\nContent-Length: 0", 413],
        ["202 Accepted\r\nContent-Length: 0", 202],
        ["103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 429 Too Many Requests\r\nContent-Length: 0", 429],
        // This answer has no length: the end of the connection ends its body.
        ["503 Service Unavailable", 503],
      ] as const) {
        const { url, seen } = await receiver(t, protocol, (socket, nth) => {
          // The first request of a connection is small and answered as usual, so the second one uses a kept connection.
          if (nth === 1 && seen.requests === 1) socket.write("HTTP/1.1 204 No Content\r\n\r\n");
          else answerAndClose(socket, head, close);
        });
        await end(deliver(url));
        for (let nth = 0; nth < 3; nth++) {
          t.match(await end(deliver(url, { payload: LARGE })), { statusCode }, `${how}: ${statusCode}`);
        }
        t.equal(seen.requests, 4, "each is posted once");
      }
    }
  });
}

t.test("an answer of which only a part came before the connection ended is none", async (t) => {
  const { deliver, end } = startTestDispatcher(t);
  for (const close of Object.values(CLOSES)) {
    const { url } = await receiver(t, "http", (socket) => {
      socket.pause();
      socket.write("HTTP/1.1 401 Unauth", () => close(socket));
    });
    const error = /^the connection was (reset|closed before an answer came) /;
    t.match(await end(deliver(url, { payload: LARGE })), { statusCode: null, error });
  }
});

t.test("a body that was answered before it was sent does not stand before the next request", async (t) => {
  const { url, seen } = await receiver(t, "http", (socket) => {
    socket.pause();
    socket.write("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
  });
  const { deliver, end } = startTestDispatcher(t);
  for (const payload of [LARGE, LARGE, PAYLOAD]) {
    t.match(await end(deliver(url, { payload })), { statusCode: 401 });
  }
  t.same(seen, { connections: 3, requests: 3 });
});

t.test("receivers that answer after a random part of a random body, and close anyhow: no answer is lost", async (t) => {
  const seed = Number(process.env.TEST_SEED ?? 20261126);
  t.comment(`TEST_SEED=${seed}`);
  const random = createRandom(seed);
  let lastStatus = 0;
  const { url, seen } = await receiver(t, "http", (socket) => {
    const status = random.integer(200, 599);
    const left = random.integer(0, 3);
    let chunks = 0;
    const answer = (): void => {
      if (chunks++ !== left) return;
      lastStatus = status;
      const close = Object.values(CLOSES)[random.integer(0, 1)] as (socket: Socket) => void;
      answerAndClose(
        socket,
        `${status} X\r\n${random.chance(0.5) ? "Connection: close\r\n" : ""}Content-Length: 0`,
        close,
      );
    };
    socket.on("data", answer);
    answer();
  });
  const { deliver, end } = startTestDispatcher(t);
  for (let nth = 0; nth < 60; nth++) {
    const attempt = await end(deliver(url, { payload: LARGE.subarray(0, random.integer(1, 6) * MB) }));
    if (attempt.statusCode !== lastStatus) t.fail(`seed ${seed}, ${nth}: ${JSON.stringify(attempt)}`);
  }
  t.equal(seen.requests, 60);
});
