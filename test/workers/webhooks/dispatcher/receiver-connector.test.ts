import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, createServer, type Server, Socket } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import t, { type Test } from "tap";
import { type DeliveryOutcome, sendDelivery } from "../../../../workers/webhooks/dispatcher/delivery-request.js";
import { ReceiverConnections } from "../../../../workers/webhooks/dispatcher/receiver-connections.js";
import {
  type ReceiverConnectorOptions,
  receiverConnector,
} from "../../../../workers/webhooks/dispatcher/receiver-connector.js";
import { RECEIVER_CERTIFICATE, RECEIVER_PRIVATE_KEY, TEST_AUTHORITY } from "../../../helpers/http/test-authority.js";
import { TEST_CERTIFICATE, TEST_PRIVATE_KEY } from "../../../helpers/http/test-certificate.js";
import { until } from "../../../helpers/until.js";
import { NO_SIGNERS } from "../../../helpers/webhooks/webhook-fixtures.js";

const OPEN_POLICY = { allow: null, deny: [], extraCa: null, ownPort: () => null };

type Addresses = { address: string; family: number }[];

const v4 = (address: string) => ({ address, family: 4 });
const v6 = (address: string) => ({ address, family: 6 });

/** A connector whose names resolve as the test says, each time anew. */
function connector(answers: Record<string, Addresses[]>, options: Partial<ReceiverConnectorOptions> = {}) {
  const asked: string[] = [];
  const connect = receiverConnector({
    ...OPEN_POLICY,
    lookUp(hostname, callback) {
      asked.push(hostname);
      const [next] = answers[hostname] ?? [];
      if ((answers[hostname]?.length ?? 0) > 1) answers[hostname]?.shift();
      setImmediate(() => callback(next === undefined ? new Error(`${hostname} is unknown`) : null, next ?? []));
    },
    ...options,
  });
  const to = (hostname: string, port: number): Promise<string> =>
    new Promise((resolve) => {
      connect(
        { hostname, port: String(port), protocol: "http:", host: `${hostname}:${port}` } as never,
        (error, socket) => {
          resolve(error?.message ?? `to ${socket?.remoteAddress}`);
          socket?.destroy();
        },
      );
    });
  return { asked, to };
}

async function listening(t: Test, host = "127.0.0.1"): Promise<{ port: number; count: () => number }> {
  let count = 0;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    count++;
    sockets.add(socket);
    socket.on("error", () => {});
  }).listen(0, host);
  await once(server, "listening");
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  });
  return { port: (server.address() as AddressInfo).port, count: () => count };
}

/** Sends an event by these connections. */
const post = (connections: ReceiverConnections, url: string): Promise<DeliveryOutcome> =>
  new Promise((resolve) => {
    const event = { eventId: "e", eventName: "WebhookTest", payload: Buffer.from("{}") } as const;
    const rest = { signers: NO_SIGNERS, headers: [], userAgent: "test", timestampSeconds: 1 };
    sendDelivery(connections, { url, ...event, ...rest }, resolve);
  });

/** Serves these connections until the test ends. @returns the port of the server */
async function serving(t: Test, server: Server, connections: ReceiverConnections): Promise<number> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.teardown(async () => {
    await connections.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

t.test("a name is resolved once for a connection, which goes to the address that was judged", async (t) => {
  const { port } = await listening(t);
  // What a rebinding name server answers: first a harmless address, then the one that it aims at.
  const { asked, to } = connector({ "rebind.test": [[v4("127.0.0.1")], [v4("169.254.169.254")]] });
  t.equal(await to("rebind.test", port), "to 127.0.0.1");
  t.same(asked, ["rebind.test"]);
  t.match(await to("rebind.test", port), /169\.254\.169\.254 is never allowed/, "the next connection is judged anew");
});

t.test("of a name's addresses only those go that may; one with none is refused", async (t) => {
  const { port, count } = await listening(t);
  const { to } = connector({
    "mixed.test": [[v4("169.254.1.1"), v6("fe80::1"), v4("127.0.0.1")]],
    "evil.test": [
      [v6("::ffff:169.254.169.254"), v6("64:ff9b::a9fe:a9fe"), v6("2002:a9fe:a9fe::1"), v6("fd00:ec2::254")],
    ],
    "any.test": [[v4("0.0.0.0"), v6("::")]],
    "none.test": [[]],
  });
  t.equal(await to("mixed.test", port), "to 127.0.0.1");
  t.match(await to("evil.test", port), /is never allowed: link-local/);
  t.match(await to("any.test", port), /is never allowed: unspecified/);
  t.match(await to("none.test", port), /none\.test has no address/);
  t.match(await to("unknown.test", port), /is unknown/);
  t.equal(count(), 1);
});

t.test(
  "the service's own port is refused at every address of this machine, by any name; another port is not",
  async (t) => {
    const own = await listening(t, "0.0.0.0");
    const other = await listening(t);
    const { to } = connector(
      { "self.test": [[v4("127.0.0.1")]], "self6.test": [[v6("::ffff:127.0.0.1")]] },
      { ownPort: () => own.port },
    );
    t.match(await to("self.test", own.port), /is the service itself/);
    t.match(await to("self6.test", own.port), /is the service itself/);
    t.match(await to("127.7.7.7", own.port), /is the service itself/);
    t.equal(await to("self.test", other.port), "to 127.0.0.1");
    t.equal(own.count(), 0);
  },
);

t.test("a name with the root's dot: TLS asks without it, look-up and Host header have it", async (t) => {
  const names: string[] = [];
  const hosts: (string | undefined)[] = [];
  const context = createSecureContext({ cert: RECEIVER_CERTIFICATE, key: RECEIVER_PRIVATE_KEY });
  const asked = (name: string, answer: (error: null, context?: SecureContext) => void): void => {
    names.push(name);
    // Whoever asks for another name gets the certificate of another host.
    answer(null, name === "localhost" ? context : undefined);
  };
  const other = { cert: TEST_CERTIFICATE, key: TEST_PRIVATE_KEY };
  const server = createHttpsServer({ ...other, SNICallback: asked }, (request, response) => {
    hosts.push(request.headers.host);
    request.resume();
    response.writeHead(204).end();
  });
  const lookedUp: string[] = [];
  const connections = new ReceiverConnections(
    receiverConnector({
      ...OPEN_POLICY,
      extraCa: TEST_AUTHORITY,
      lookUp(hostname, callback) {
        lookedUp.push(hostname);
        callback(null, [v4("127.0.0.1")]);
      },
    }),
  );
  const port = await serving(t, server, connections);
  const postTo = (host: string) => post(connections, `https://${host}:${port}/`);
  t.match(await postTo("localhost."), { statusCode: 204, error: null });
  t.match(await postTo("localhost"), { statusCode: 204, error: null });
  t.match(await postTo("127.0.0.1"), { statusCode: null, error: /self-signed certificate/ }, "an address is no name");
  t.match(await postTo("cell.localhost."), { statusCode: null, error: /self-signed certificate/ });
  // A session that goes on asks for nothing.
  t.same([...new Set(names)], ["localhost", "cell.localhost"]);
  t.same(lookedUp, ["localhost.", "localhost", "cell.localhost."]);
  t.same(hosts, [`localhost.:${port}`, `localhost:${port}`]);
});

t.test(
  "a connection that its receiver has closed already is said to be closed, not to have a bad address",
  async (t) => {
    const { port } = await listening(t);
    const connect = receiverConnector({ ...OPEN_POLICY, lookUp: () => t.fail("an address is not looked up") });
    // A socket that was handed over and has closed knows no address any more.
    const sockets = Socket.prototype as unknown as { _getpeername(): object };
    const { _getpeername } = sockets;
    const gone = await new Promise<string>((resolve) => {
      sockets._getpeername = () => ({});
      const target = { hostname: "127.0.0.1", port: String(port), protocol: "http:", host: `127.0.0.1:${port}` };
      connect(target as never, (...[error]) => {
        sockets._getpeername = _getpeername;
        resolve(error?.message ?? "connected");
      });
    });
    t.equal(gone, "the connection was closed as soon as it was made");
  },
);

t.test("what the machine lacks for a connection is told as such, and is no attempt", async (t) => {
  const lack = (code: string) => Object.assign(new Error(`connect ${code} 10.0.0.7:80`), { code });
  const ends = [
    [lack("EMFILE"), { lacking: "the process has no file descriptor left" }],
    [new AggregateError([lack("ENFILE"), lack("ENFILE")]), { lacking: "the machine has no file descriptor left" }],
    [new AggregateError([lack("EMFILE"), lack("ECONNREFUSED")]), { statusCode: null, error: /EMFILE|refused/ }],
    [lack("ECONNREFUSED"), { statusCode: null, error: "the connection was refused (ECONNREFUSED)" }],
  ] as const;
  for (const [error, expected] of ends) {
    const connections = new ReceiverConnections((_, callback) => callback(error, null));
    t.teardown(() => connections.destroy());
    t.match(await post(connections, "http://10.0.0.7/"), expected);
  }
});

t.test("once the request was written, the lack of something is a failed attempt: it may have arrived", async (t) => {
  let ours: Socket | undefined;
  const server = createHttpServer(() => {
    ours?.destroy(Object.assign(new Error("read ENOMEM"), { code: "ENOMEM" }));
  });
  const connect = receiverConnector({ ...OPEN_POLICY, lookUp: (_, callback) => callback(null, []) });
  const connections = new ReceiverConnections((target, callback) =>
    connect(target, (error, socket) => {
      ours = socket ?? undefined;
      if (error === null) callback(null, socket);
      else callback(error, null);
    }),
  );
  const port = await serving(t, server, connections);
  t.match(await post(connections, `http://127.0.0.1:${port}/`), { statusCode: null, error: /ENOMEM/ });
});

t.test("a repetition that lacks a connection is a failed attempt: the first request was written", async (t) => {
  let requests = 0;
  const server = createHttpServer((request, response) => {
    if (++requests === 1) response.writeHead(204).end();
    else request.socket.destroy();
  });
  const connect = receiverConnector({ ...OPEN_POLICY, lookUp: (_, callback) => callback(null, []) });
  let connects = 0;
  const connections = new ReceiverConnections((target, callback) => {
    if (++connects === 1) connect(target, callback);
    else callback(Object.assign(new Error("connect EMFILE"), { code: "EMFILE" }), null);
  });
  const url = `http://127.0.0.1:${await serving(t, server, connections)}/`;
  t.match(await post(connections, url), { statusCode: 204, error: null });
  t.match(await post(connections, url), { statusCode: null, error: /EMFILE/ });
  t.same([requests, connects], [2, 2]);
});

t.test("so many connections are kept for further requests, whatever the receivers are", async (t) => {
  const server = createHttpServer((_, response) => void response.writeHead(204).end());
  let open = 0;
  server.on("connection", (socket) => {
    open++;
    socket.on("close", () => open--);
  });
  const connect = receiverConnector({ ...OPEN_POLICY, lookUp: (_, callback) => callback(null, [v4("127.0.0.1")]) });
  const connections = new ReceiverConnections(connect, 3);
  const port = await serving(t, server, connections);
  for (let nth = 0; nth < 8; nth++) {
    t.match(await post(connections, `http://receiver-${nth}:${port}/`), { error: null });
  }
  await until("the other connections are closed", () => open <= 3);
  t.equal(open, 3);
});
