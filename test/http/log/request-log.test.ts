import { Writable } from "node:stream";
import pino from "pino";
import t, { type Test } from "tap";
import { RequestLog } from "../../../http/log/request-log.js";
import { shownInLog } from "../../../http/log/service-log.js";
import { jsonReply } from "../../../http/replies/reply.js";
import { AllowedHosts } from "../../../http/requests/allowed-hosts.js";
import { ApiKeys } from "../../../http/requests/api-keys.js";
import { declaredBody } from "../../helpers/http/declared-body.js";
import { onEveryFront } from "../../helpers/http/handler-server.js";
import { RawConnection } from "../../helpers/http/raw-http.js";
import { listOf } from "../../helpers/list-of.js";
import { ManualTimers } from "../../helpers/recorder/manual-timers.js";

function refusalLog() {
  const lines: Record<string, unknown>[] = [];
  const log = pino(
    { base: null, timestamp: false },
    new Writable({
      write(chunk, _encoding, done) {
        const { status, trace_id, cause, ...line } = JSON.parse(String(chunk));
        lines.push({ path: cause, ...line });
        done();
      },
    }),
  );
  const timers = new ManualTimers();
  const refusals = new RequestLog(log, timers);
  const refuse = (kind: string, address: string, path: string): void => {
    refusals.answeredByServer(Number(kind), "trace", path, address);
  };
  return { lines, timers, refusals, refuse };
}

t.test("of one kind and address there is a line at once, then one in ten seconds with their count", async (t) => {
  const { lines, timers, refuse } = refusalLog();
  const line = (path: string, remote_address: string, count?: number) => ({
    level: 30,
    path,
    ...(count !== undefined && { count }),
    remote_address,
    msg: "request",
  });
  refuse("404", "10.0.0.7", "/a");
  for (let i = 0; i < 41; i++) refuse("404", "10.0.0.7", `/b${i}`);
  refuse("401", "10.0.0.7", "/c");
  timers.advance(4_000);
  refuse("404", "10.0.0.8", "/d");
  t.same(lines, [line("/a", "10.0.0.7"), line("/c", "10.0.0.7"), line("/d", "10.0.0.8")]);
  timers.advance(6_000);
  t.same(lines.splice(0).slice(3), [line("/b0", "10.0.0.7", 41)]);
  refuse("404", "10.0.0.7", "/e");
  timers.advance(9_999);
  t.same(lines, [], "the next window has begun");
  timers.advance(1);
  t.same(lines.splice(0), [line("/e", "10.0.0.7", 1)]);
  timers.advance(10_000);
  t.equal(timers.armed, 0, "nothing is kept of who has stopped");
  refuse("404", "10.0.0.7", "/f");
  t.same(lines, [line("/f", "10.0.0.7")], "and who begins again is told at once");
});

t.test("however long who is refused goes on, one timer waits for each", async (t) => {
  const { timers, refuse } = refusalLog();
  for (let second = 0; second < 200; second++) {
    for (const address of ["10.0.0.7", "10.0.0.8", "10.0.0.9"]) refuse("401", address, "/");
    timers.advance(1_000);
    t.equal(timers.armed, 3);
  }
});

t.test("an address is shown as people write it", async (t) => {
  const { lines, refuse } = refusalLog();
  refuse("404", "::ffff:10.1.2.3", "/");
  refuse("404", "2001:0db8:0000:0000:0000:0000:0000:0001", "/");
  refuse("404", "", "/");
  t.same(
    lines.map(({ remote_address }) => remote_address),
    ["10.1.2.3", "2001:db8::1", undefined],
  );
});

t.test("any number of addresses make a bounded number of lines", async (t) => {
  const { lines, timers, refuse } = refusalLog();
  for (let i = 0; i < 20_000; i++) refuse("404", `2001:db8::${i.toString(16)}`, "/");
  t.equal(lines.length, 101);
  for (let i = 0; i < 2; i++) refuse("401", "10.0.0.7", "/");
  timers.advance(10_000);
  const [others, ofAnotherKind] = lines.slice(102);
  t.match(others, { count: 19_899 });
  t.notOk("remote_address" in (others ?? {}), "of several addresses it names none");
  t.match(ofAnotherKind, { remote_address: "10.0.0.7", count: 1 }, "lines of another kind keep their names");
  t.equal(lines.length, 104);
});

t.test("what was counted is told when the service ends", async (t) => {
  const { lines, timers, refusals, refuse } = refusalLog();
  for (let i = 0; i < 5; i++) refuse("422", "10.0.0.7", "/");
  refusals.flush();
  t.match(lines, listOf({ path: "/" }, { path: "/", count: 4 }));
  t.equal(timers.armed, 0);
});

t.test("a text from outside is cut, and no key stands in what is left of it", async (t) => {
  const key = `isk_${"0a".repeat(6)}_${"S".repeat(43)}`;
  t.equal(shownInLog("x".repeat(200)), "x".repeat(200));
  t.equal(shownInLog("x".repeat(201)), `${"x".repeat(200)}…`);
  t.equal(shownInLog(`${"x".repeat(199)}😀`), `${"x".repeat(199)}\ufffd…`, "within a character");
  const encoded = [...key].map((character) => `%${character.charCodeAt(0).toString(16)}`).join("");
  const fivefold = encoded.replaceAll("%", "%25252525");
  for (const text of [key, encoded, fivefold]) {
    for (let before = 0; before < 220; before++) t.notMatch(shownInLog("y".repeat(before) + text), /SSS/);
    for (let before = 3_400; before < 4_010; before++) t.notMatch(shownInLog("%41".repeat(before / 3) + text), /SSS/);
  }
});

/** Requests that are refused in every way there is, with long texts where one fits. uWebSockets.js 20.56 takes heads of 4 KiB. */
const long = "z".repeat(2_500);
const REFUSED: Record<string, string> = {
  401: `GET /keyed?${long} HTTP/1.1\r\nHost: cell\r\n\r\n`,
  403: `POST /things?${long} HTTP/1.1\r\nHost: cell\r\nOrigin: http://${long.slice(0, 1_000)}\r\nContent-Length: 0\r\n\r\n`,
  404: `GET /none/${long} HTTP/1.1\r\nHost: cell\r\n\r\n`,
  405: `DELETE /things?${long} HTTP/1.1\r\nHost: cell\r\n\r\n`,
  411: `POST /things?${long} HTTP/1.1\r\nHost: cell\r\n\r\n`,
  415: `POST /things?${long} HTTP/1.1\r\nHost: cell\r\nContent-Type: ${long.slice(0, 1_000)}\r\nContent-Length: 2\r\n\r\n{}`,
  421: `GET /things?${long} HTTP/1.1\r\nHost: elsewhere\r\n\r\n`,
  422: `POST /things?${long} HTTP/1.1\r\nHost: cell\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\n{}}`,
  500: `GET /fails?${long} HTTP/1.1\r\nHost: cell\r\n\r\n`,
};
const TIMES = 30;

onEveryFront(t, "no flood of refused requests makes more than a line or two of each kind", async (t, serve) => {
  const { port, server, lines } = await serve(
    t,
    {
      "/keyed": () => jsonReply({}),
      "/fails": {
        scope: "none",
        handle: async () => {
          throw new Error("inside");
        },
      },
      "POST /things": { scope: "none", body: declaredBody({ type: "object" }), handle: () => jsonReply({}) },
    },
    { level: "info", apiKeys: new ApiKeys([]), allowedHosts: new AllowedHosts(["cell"]) },
  );
  await Promise.all(Object.entries(REFUSED).map(([status, request]) => flood(t, port, Number(status), request)));
  await server.close(0);
  const kinds = new Map<string, number>();
  for (const { msg, status = "", count = 1 } of lines) {
    const kind = `${msg} ${status}`;
    kinds.set(kind, (kinds.get(kind) ?? 0) + Number(count));
  }
  const expected = Object.keys(REFUSED).map((status): [string, number] => [`request ${status}`, TIMES]);
  t.same(
    Object.fromEntries(kinds),
    Object.fromEntries([...expected, ["a request failed inside the service ", TIMES]]),
    "each is counted",
  );
  t.ok(lines.length <= 3 * kinds.size, `${lines.length} lines of ${kinds.size} kinds`);
  for (const { err, ...line } of lines) t.ok(JSON.stringify(line).length < 1_000, "and none is long");
});

async function flood(t: Test, port: number, status: number, request: string): Promise<void> {
  for (let i = 0; i < TIMES; i++) {
    const connection = await RawConnection.open(port);
    connection.send(request);
    const answer = await connection.response();
    connection.close();
    if (answer?.status !== status) t.fail(`${answer?.status} in place of ${status}`);
  }
}
