import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { downloadReply, jsonBytesReply, jsonReply, type StreamBody } from "../../../http/replies/reply.js";
import { KEEP_ALIVE_SECONDS } from "../../../http/server/server-options.js";
import { FRONTS_HERE } from "../../helpers/http/fronts-here.js";
import { type Handler, onEveryFront, serveHandlers } from "../../helpers/http/handler-server.js";
import { RawConnection } from "../../helpers/http/raw-http.js";
import { isFullSize } from "../../helpers/test-size.js";

const request = (path: string, method = "GET", lines = "") =>
  `${method} ${path} HTTP/1.1\r\nHost: cell:8000\r\n${lines}\r\n`;

const kept = jsonBytesReply(Buffer.from(JSON.stringify({ text: "x".repeat(4_000) })), true);
const body = (totalBytes: number): StreamBody => ({
  totalBytes,
  read: async (_position, lengthBytes) => new Uint8Array(lengthBytes),
  release: () => {},
});
const HANDLERS: Record<string, Handler> = {
  "/now": () => jsonReply("now"),
  "/kept": () => kept,
  "/later": async () => jsonReply("later"),
  "/large": () => ({ status: 200, contentType: "text/plain", body: new Uint8Array(8_000_000) }),
  "/download": () => downloadReply(body(1_000_000), "application/octet-stream", "a.bin"),
};
const ANSWERS: readonly [method: string, path: string, status: number][] = [
  ["GET", "/now", 200],
  ["GET", "/kept", 200],
  ["GET", "/later", 200],
  ["GET", "/large", 200],
  ["GET", "/download", 200],
  ["HEAD", "/now", 200],
  ["HEAD", "/download", 200],
  ["OPTIONS", "/now", 204],
  ["GET", "/nowhere", 404],
];

onEveryFront(
  t,
  "clients are told how long a connection may be kept, and that it ends where it does",
  async (t, serve) => {
    const { port } = await serve(t, HANDLERS);
    const connection = await RawConnection.openFor(t, port);
    for (const [method, path, status] of ANSWERS) {
      for (const lines of ["", "Accept-Encoding: gzip\r\n"]) {
        connection.send(request(path, method, lines));
        const answer = await connection.response(method);
        t.equal(answer?.status, status, `${method} ${path}`);
        const told = { connection: "keep-alive", "keep-alive": `timeout=${KEEP_ALIVE_SECONDS}` };
        t.match(answer?.headers, told, `${method} ${path}`);
      }
      const last = await RawConnection.open(port);
      last.send(request(path, method, "Connection: close\r\n"));
      const answer = await last.response(method);
      t.equal(answer?.status, status, `${method} ${path}, the last one`);
      t.equal(answer?.headers["keep-alive"], undefined, `${method} ${path}, the last one`);
      t.not(answer?.headers.connection, "keep-alive", `${method} ${path}, the last one`);
      await last.closed;
    }
    connection.send(request("/now", "GET", "Content-Length: 65537\r\n"));
    const refused = await connection.response();
    t.equal(refused?.status, 413);
    t.equal(refused?.headers.connection, "close");
    t.equal(refused?.headers["keep-alive"], undefined);
    await connection.closed;
  },
);

/** As long as uWebSockets.js may take, and what a busy machine adds. */
const CLOSED_WITHIN_MS = 20_000;

t.test(
  "a connection that is idle for as long as is told still answers, and is closed soon after its limit",
  async (t) => {
    // All of them side by side: what lasts is the waiting.
    const waits = FRONTS_HERE.map(async ({ name, front, uwsPackage }) => {
      const { port } = await serveHandlers(t, HANDLERS, { front, ...(uwsPackage !== undefined && { uwsPackage }) });
      const each = ANSWERS.map(async ([method, path]) => {
        const connection = await RawConnection.openFor(t, port);
        const ask = async () => {
          connection.send(request(path, method));
          return (await connection.response(method))?.status;
        };
        const first = await ask();
        // In a commit's size it only has to stay open for as long.
        if (isFullSize) {
          await sleep(KEEP_ALIVE_SECONDS * 1_000);
          t.equal(await ask(), first, `${name}: ${method} ${path} after ${KEEP_ALIVE_SECONDS} s`);
        }
        const idleSinceMs = performance.now();
        await connection.closed;
        const idleMs = performance.now() - idleSinceMs;
        const seconds = (idleMs / 1_000).toFixed(1);
        t.ok(idleMs > KEEP_ALIVE_SECONDS * 1_000, `${name}: ${method} ${path} closed after ${seconds} s`);
        t.ok(idleMs < CLOSED_WITHIN_MS, `${name}: ${method} ${path} closed after ${seconds} s`);
        return idleMs / 1_000;
      });
      const seconds = (await Promise.all(each)).sort((a, b) => a - b);
      t.comment(
        `${name}: idle connections were closed after ${seconds[0]?.toFixed(1)} to ${seconds.at(-1)?.toFixed(1)} s`,
      );
    });
    await Promise.all(waits);
  },
);
