import { setImmediate as eventLoopTurn } from "node:timers/promises";
import t from "tap";
import { createRandom, type Random } from "../../core/random.js";
import { RecordedCell } from "../helpers/captures/recorded-cell.js";
import { frontsHere } from "../helpers/http/fronts-here.js";
import { RawConnection } from "../helpers/http/raw-http.js";
import { resetConnection } from "../helpers/http/reset-connection.js";
import { sized } from "../helpers/test-size.js";

const seed = Number(process.env.TEST_SEED ?? 20_261_121);
/** Requests that stand in a mutated or broken-off text. */
const MUTATED_REQUESTS = sized(5_000, 200_000);

const PATHS = [
  "/runs", "/runs/active", "/runs/x", "/runs/x/files/y", "/runs?limit=%zz&limit=2", "/programs?offset=1", "/health", "/openapi.json",
  "/sensor/frames/x/file.npy", "/livez", "/runs/%00/../..", "//", "/runs/x/files/%2e%2e%2f", "/system/version?&&=&a=b=c", "/docs",
  "/metrics", "*", "http://x/runs",
]; // biome-ignore format: a table
const HEADERS = [
  "Host: x", "Host: y", "Content-Length: 0", "Content-Length: 5", "Transfer-Encoding: chunked", "Connection: close", "Expect: 100-continue",
  "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Upgrade: websocket", "X: \xff\xfe", "Range: bytes=0-", "A:",
  "Range: bytes=9-1,-", "If-None-Match: *", "If-None-Match: W/\"", "If-Range: \"", "If-Modified-Since: x", "Accept-Encoding: gzip;q=0.1",
  "Content-Type: application/json", "Content-Length: 70000", "Authorization: Bearer x", "Origin: null", "Content-Length: 1e1",
]; // biome-ignore format: a table
const METHODS = ["GET", "GET", "GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS", "BREW", "get"];

/** The statuses with which uWebSockets.js from 20.56 on refuses requests itself, with one header line and no length. */
const LIBRARYS_OWN = [400, 431, 505];
const FAILURE = "HTTP/1.1 500 ";

function randomRequest(random: Random): string {
  const lines = [`${random.pick(METHODS)} ${random.pick(PATHS)} HTTP/1.1`];
  if (random.integer(0, 9) > 0) lines.push("Host: cell:8000");
  for (let count = random.integer(0, 3); count > 0; count--) lines.push(random.pick(HEADERS));
  return `${lines.join("\r\n")}\r\n\r\n`;
}

function mutated(random: Random, text: string): string {
  const bytes = Buffer.from(text, "latin1");
  for (let count = random.integer(0, 3); count > 0; count--) {
    bytes[random.integer(0, bytes.length - 1)] = random.integer(0, 255);
  }
  return bytes.toString("latin1");
}

for (const here of frontsHere(t)) {
  t.test(
    `random, mutated, pipelined and broken-off requests never end the process (${here.name}, seed ${seed})`,
    async (t) => {
      const random = createRandom(seed);
      const cell = new RecordedCell();
      const port = await cell.listenFor(t, here);
      const statuses = new Map<string, number>();
      const sent = { connections: 0, requests: 0, mutated: 0 };
      let failures = 0;
      while (sent.mutated < MUTATED_REQUESTS) {
        let text = "";
        const requests = random.integer(1, 20);
        for (let count = requests; count > 0; count--) text += randomRequest(random);
        const isMutated = random.integer(0, 1) === 0;
        if (isMutated) text = mutated(random, text);
        const isBrokenOff = random.integer(0, 2) === 0;
        if (isBrokenOff) text = text.slice(0, random.integer(0, text.length - 1));
        sent.connections++;
        sent.requests += requests;
        if (isMutated || isBrokenOff) sent.mutated += requests;
        const connection = await RawConnection.open(port);
        let tail = "";
        connection.socket.on("data", (bytes) => {
          // Counts failures in all answers, not only in the first. A status line may come in two chunks.
          tail += bytes.toString("latin1");
          failures += tail.split(FAILURE).length - 1;
          tail = tail.slice(1 - FAILURE.length);
        });
        connection.send(text);
        if (random.integer(0, 3) === 0) {
          // The client goes at once, while answers are under way.
          resetConnection(connection.socket);
        } else {
          const answer = connection.response();
          for (let turns = 0; turns < 5; turns++) await eventLoopTurn();
          // Much of what is sent deserves no answer: the end of the client's side then ends the case.
          connection.socket.end();
          const first = await answer;
          const status = String(first?.status ?? "none");
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
          const traceId = first?.headers["x-trace-id"] ?? "";
          const isLibrarys =
            here.front === "uws" &&
            LIBRARYS_OWN.includes(first?.status ?? 0) &&
            JSON.stringify(first?.headers) === '{"connection":"close"}';
          if (first !== undefined && first.status !== 100 && !isLibrarys && !/^[0-9a-f]{32}$/.test(traceId)) {
            t.fail(`an answer of ${first.status} without a trace id`);
          }
          connection.close();
        }
      }
      t.comment(
        `${here.name}: ${JSON.stringify(sent)}, first answers ${JSON.stringify(Object.fromEntries([...statuses].sort()))}`,
      );
      t.equal(failures, 0, "nothing of it is a failure of the service");
      for (const status of ["200", "400", "404", "405"]) t.ok(statuses.has(status), `some were answered ${status}`);
      const last = await RawConnection.open(port);
      last.send("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
      t.equal((await last.response())?.status, 200, "it still answers");
      last.close();
    },
  );
}
