/** The table of workers/recorder/README.md for calls that are not the file system's: listen, accept, connect, spawn. */
import { ChildProcess } from "node:child_process";
import { linkSync, rmSync } from "node:fs";
import { createServer, Server, Socket } from "node:net";
import { constants } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import { LOOK_INTERVAL_MS } from "../../../workers/recorder/upkeep/store-watch.js";
import { NameLookups } from "../../../workers/webhooks/dispatcher/name-lookups.js";
import { receiverConnector } from "../../../workers/webhooks/dispatcher/receiver-connector.js";
import { startLookupProcess } from "../../../workers/webhooks/dispatcher/start-lookup-process.js";
import { serveHandlers } from "../../helpers/http/handler-server.js";
import { RawConnection } from "../../helpers/http/raw-http.js";
import { programPut } from "../../helpers/link/link-messages.js";
import { ManualTimers } from "../../helpers/recorder/manual-timers.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

const CODES = ["EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "ENOBUFS"] as const;
type Code = (typeof CODES)[number];
const resultOf = (code: Code): number => -constants.errno[code];

/** Node's own object for what the system has: its calls answer with the system's code, 0 or below. */
type Handle = Record<string, (...args: unknown[]) => unknown>;
const handleOf = (owner: object): Handle => (owner as { _handle: Handle })._handle;

/** While `missing` is a code, this call of all such handles answers with it. */
function shortOf(t: Test, handle: Handle, call: string, isMeant: (...args: unknown[]) => boolean = () => true) {
  const prototype = Object.getPrototypeOf(handle) as Handle;
  const original = prototype[call] as Handle[string];
  const short: { missing: Code | null } = { missing: null };
  prototype[call] = function (this: Handle, ...args) {
    return short.missing !== null && isMeant(...args) ? resultOf(short.missing) : original.apply(this, args);
  };
  t.teardown(() => {
    prototype[call] = original;
  });
  return short;
}

async function listening(t: Test, address: string | number): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(address as string, resolve));
  t.teardown(() => server.close());
  return server;
}

/** Every server that listens from now on. */
function seenServers(t: Test): Set<Server> {
  const servers = new Set<Server>();
  const { listen } = Server.prototype;
  Server.prototype.listen = function (this: Server, ...args: unknown[]) {
    servers.add(this);
    return (listen as (...args: unknown[]) => Server).apply(this, args);
  } as typeof listen;
  t.teardown(() => {
    Server.prototype.listen = listen;
  });
  return servers;
}

/** As libuv tells of it. */
function failAccept(server: Server, code: Code): void {
  handleOf(server).onconnection?.(resultOf(code), undefined);
}

t.test("listen: a start is refused and says so; anew, health says so, and it is tried again", async (t) => {
  const directory = temporaryDirectory(t);
  const pipe = handleOf(await listening(t, join(directory, "other.sock")));
  const short = shortOf(t, pipe, "bind", (path) => String(path).endsWith("cell.sock"));
  for (const code of CODES) {
    short.missing = code;
    const store = join(directory, code);
    await t.rejects(RecorderHarness.start(t, store), {
      code: "cell_socket_unusable",
      message: new RegExp(`cell\\.sock: .*${code}`),
    });
    short.missing = null;
    const recorder = await RecorderHarness.start(t, store);
    short.missing = code;
    rmSync(recorder.address.path);
    const look = async (status: string) => {
      while (recorder.row("recorder").status !== status) {
        recorder.timers.advance(LOOK_INTERVAL_MS);
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    await look("degraded");
    t.match(recorder.row("recorder").detail, new RegExp(`producers cannot connect: .*${code}`));
    short.missing = null;
    await look("healthy");
    await (await recorder.connect("cell")).accept(programPut());
    await recorder.stop();
  }
});

t.test("connect: a socket that is left over is not taken for another process's", async (t) => {
  const directory = temporaryDirectory(t);
  const left = join(directory, "left.sock");
  const server = await listening(t, left);
  const socket = new Socket().connect(left);
  const short = shortOf(t, handleOf(socket), "connect", (_, path) => String(path).endsWith("cell.sock"));
  socket.destroy();
  for (const code of CODES) {
    const store = join(directory, code);
    await (await RecorderHarness.start(t, store)).stop();
    // The name stays when its server ends.
    linkSync(left, join(store, "cell.sock"));
  }
  await new Promise((resolve) => server.close(resolve));
  for (const code of CODES) {
    const store = join(directory, code);
    short.missing = code;
    await t.rejects(RecorderHarness.start(t, store), {
      code: "cell_socket_unusable",
      message: code === "EAGAIN" ? /another process listens there$/ : /cell\.sock: the (process|machine) has no /,
    });
    short.missing = null;
    const recorder = await RecorderHarness.start(t, store);
    await recorder.stop();
  }
});

t.test("accept: the link and the lock take the next connection; health says so meanwhile", async (t) => {
  const servers = seenServers(t);
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
  t.equal(servers.size, 2);
  for (const code of CODES) {
    for (const server of servers) for (let nth = 0; nth < 3; nth++) failAccept(server, code);
    t.match(recorder.row("recorder"), { status: "degraded", detail: new RegExp(`accept.*${code}.*; the service`) });
    await (await recorder.connect(code.toLowerCase())).accept(programPut());
    while (recorder.row("recorder").status !== "healthy") recorder.timers.advance(500);
  }
  const told = recorder.lines.filter(({ level }) => level === "warn" || level === "error");
  t.equal(told.length, CODES.length, "one line for all of one shortage");
});

t.test("accept: the node front answers the next client", async (t) => {
  const servers = seenServers(t);
  const handlers = { "/here": () => ({ status: 200, headers: [], body: null }) };
  const { port } = await serveHandlers(t, handlers, { front: "node" });
  for (const code of CODES) {
    for (const server of servers) for (let nth = 0; nth < 3; nth++) failAccept(server, code);
    const client = await RawConnection.open(port);
    client.send("GET /here HTTP/1.1\r\nHost: cell\r\n\r\n");
    t.match(await client.response(), { status: 200 });
    client.close();
  }
});

t.test("connect: the attempt fails with the code, and the next one comes through", async (t) => {
  const server = await listening(t, 0);
  const { port } = server.address() as { port: number };
  const socket = new Socket().connect(port, "127.0.0.1");
  const short = shortOf(t, handleOf(socket), "connect");
  socket.destroy();
  const connect = receiverConnector({
    ...{ allow: null, deny: [], extraCa: null, ownPort: () => null },
    lookUp: (_, callback) => callback(null, [{ address: "127.0.0.1", family: 4 }]),
  });
  const attempt = (hostname: string): Promise<string> =>
    new Promise((resolve) => {
      const target = { hostname, port: String(port), protocol: "http:", host: `${hostname}:${port}` };
      connect(target as never, (error, connected) => {
        resolve((error as NodeJS.ErrnoException | null)?.code ?? "connected");
        connected?.destroy();
      });
    });
  for (const hostname of ["127.0.0.1", "mes.test"]) {
    for (const code of CODES) {
      short.missing = code;
      t.equal(await attempt(hostname), code, hostname);
      short.missing = null;
      t.equal(await attempt(hostname), "connected");
    }
  }
});

t.test("spawn: a name does not resolve now, and does a second later", async (t) => {
  const timers = new ManualTimers();
  const short = shortOf(t, handleOf(new ChildProcess()), "spawn");
  for (const code of CODES) {
    const lookups = new NameLookups({ timers, nowMs: () => timers.nowMs(), start: startLookupProcess });
    const held = setInterval(() => {}, 1_000);
    const lookUp = (): Promise<string> =>
      new Promise((resolve) => {
        lookups.lookUp("localhost", (error) => resolve((error as NodeJS.ErrnoException | null)?.code ?? "found"));
      });
    short.missing = code;
    t.equal(await lookUp(), code);
    short.missing = null;
    timers.advance(1_000);
    t.equal(await lookUp(), "found", code);
    lookups.close();
    clearInterval(held);
  }
});
