import t, { type Test } from "tap";
import { downloadReply, jsonBytesReply, jsonReply, type Reply } from "../../../http/replies/reply.js";
import { SYSTEM_STALL_CLOCK } from "../../../http/server/stalled-clients.js";
import { onEveryFront, until } from "../../helpers/http/handler-server.js";
import { RawConnection } from "../../helpers/http/raw-http.js";
import { ManualTimers } from "../../helpers/recorder/manual-timers.js";

const MIB = 1024 * 1024;
const GET = (path: string, method = "GET") => `${method} ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

/** What is asked for while the server closes. */
const LATE = [
  ["GET", "/now", 200],
  ["GET", "/kept", 200],
  ["GET", "/soon", 200],
  ["HEAD", "/now", 200],
  ["GET", "/nowhere", 404],
  ["OPTIONS", "/now", 204],
  ["GET", "/small-download", 200],
  ["GET", "/empty-download", 200],
  ["HEAD", "/small-download", 200],
  ["GET", "/large", 200],
] as const;

/** A body of sevens. @param untilLet what its first read waits for */
const bodyOf = (totalBytes: number, untilLet = async (): Promise<void> => {}) => ({
  totalBytes,
  async read(position: number, lengthBytes: number) {
    if (position === 0) await untilLet();
    return new Uint8Array(lengthBytes).fill(7);
  },
  release: () => {},
});

onEveryFront(t, "while a server closes, every answer is the last of its connection", async (t, serve) => {
  // The front caches the header lines of this reply. They say keep-alive, so they must not be used while it closes.
  const kept = jsonBytesReply(Buffer.from('{"a":1}'), true);
  const waiting: ((reply: Reply) => void)[] = [];
  let letRead: (() => void) | undefined;
  const untilLet = () =>
    new Promise<void>((resolve) => {
      letRead = resolve;
    });
  const { server, port } = await serve(t, {
    "/wait": () => new Promise<Reply>((resolve) => waiting.push(resolve)),
    "/download": () => downloadReply(bodyOf(4 * MIB, untilLet), "application/octet-stream", "a.bin"),
    "/small-download": () => downloadReply(bodyOf(100), "application/octet-stream", "a.bin"),
    "/empty-download": () => downloadReply(bodyOf(0), "application/octet-stream", "a.bin"),
    "/now": () => jsonReply("now"),
    "/kept": () => kept,
    "/soon": async () => jsonReply("soon"),
    "/large": () => jsonReply("x".repeat(8 * MIB)),
  });
  const open = async () => {
    const connection = await RawConnection.openFor(t, port);
    return connection;
  };
  // One that holds the server open to the end of this test, others whose requests are under way, and some that ask meanwhile.
  const [last, asked, download] = [await open(), await open(), await open()];
  last.send(GET("/wait"));
  asked.send(GET("/wait"));
  download.send(GET("/download"));
  await until(() => waiting.length === 2 && letRead !== undefined);
  const clients = await beginLate(t, open);
  // Once bytes that came later have their answer, the server has read these.
  const other = await open();
  other.send(GET("/now"));
  await other.response();
  let isClosed = false;
  const closed = server.close(600_000).then(() => {
    isClosed = true;
  });
  await t.rejects(RawConnection.open(port), { code: "ECONNREFUSED" });
  for (const { connection } of clients) connection.send("\r\n");
  for (const { connection, request } of clients) {
    const [method, path, status] = request;
    const answer = await connection.response(method);
    t.equal(answer?.status, status, `${method} ${path}`);
    t.equal(answer?.headers.connection, "close", `${method} ${path}`);
    t.equal(answer?.headers["keep-alive"], undefined, `${method} ${path}`);
    if (path === "/large") t.equal(answer?.body.length, 8 * MIB + 2, "whole");
  }
  waiting[1]?.(jsonReply("asked"));
  const answer = await asked.response();
  t.equal(answer?.json(), "asked");
  t.equal(answer?.headers.connection, "close", "one that was under way");
  await asked.closed;
  letRead?.();
  const whole = await download.response();
  t.equal(whole?.body.length, 4 * MIB);
  t.equal(whole?.headers.connection, "close", "a download that was under way");
  t.notOk(isClosed, "all of them are gone while one is still under way");
  waiting[0]?.(jsonReply("last"));
  t.equal((await last.response())?.json(), "last");
  await closed;
  await last.closed;
});

/** One kept connection for each request, which lacks only its last bytes. The server may end what has not begun. */
async function beginLate(t: Test, open: () => Promise<RawConnection>) {
  const clients = [];
  for (const request of LATE) {
    const connection = await open();
    connection.send(GET("/kept"));
    t.equal((await connection.response())?.headers.connection, "keep-alive", "a connection that is kept");
    connection.send(GET(request[1], request[0]).slice(0, -2));
    clients.push({ connection, request });
  }
  return clients;
}

onEveryFront(t, "a server that has closed has cut what outlasts the grace, and leaves no timer", async (t, serve) => {
  for (const graceMs of [0, 600_000]) {
    const clock = new ManualTimers();
    const handlers = { "/large": () => jsonReply("x".repeat(16 * MIB)), "/small": () => jsonReply(1) };
    const { server, port } = await serve(t, handlers, { stallClock: clock });
    const client = await RawConnection.openFor(t, port);
    client.socket.pause();
    client.send(GET(graceMs === 0 ? "/large" : "/small"));
    if (graceMs === 0) await until(() => server.figures().heldBytes > 0 && clock.armed > 0);
    else {
      client.socket.resume();
      t.equal((await client.response())?.status, 200);
    }
    await server.close(graceMs);
    if (graceMs === 0) {
      client.socket.resume();
      t.equal(await client.response(), undefined, "cut in the middle of its answer");
    }
    await until(() => server.figures().openRequests === 0);
    t.equal(clock.armed, 0);
  }
});

t.test("the timer that looks at clients does not keep the process", async (t) => {
  const timer = SYSTEM_STALL_CLOCK.set(() => {}, 1_000_000) as NodeJS.Timeout;
  t.notOk(timer.hasRef());
  SYSTEM_STALL_CLOCK.clear(timer);
});

onEveryFront(t, "a large answer that its client takes slowly is not lost when the server closes", async (t, serve) => {
  let finish: ((reply: Reply) => void) | undefined;
  const wait = () =>
    new Promise<Reply>((resolve) => {
      finish = resolve;
    });
  const { server, port } = await serve(t, { "/wait": wait });
  const client = await RawConnection.openFor(t, port);
  client.send(GET("/wait"));
  await until(() => finish !== undefined);
  client.socket.pause();
  const closed = server.close(600_000);
  finish?.(jsonReply("x".repeat(16 * MIB)));
  await until(() => server.figures().heldBytes > 0 || server.figures().openRequests === 0);
  if (server.figures().openRequests === 0) await closed;
  client.socket.resume();
  const answer = await client.response();
  t.equal(answer?.headers.connection, "close");
  t.equal(answer?.body.length, 16 * MIB + 2);
  client.close();
  await closed;
});
