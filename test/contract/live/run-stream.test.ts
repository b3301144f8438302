import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { get as getTls } from "node:https";
import t, { type Test } from "tap";
import { formatTimeUs } from "../../../core/timestamps.js";
import type { LiveClientsOptions } from "../../../http/live/live-clients.js";
import { FIXTURE_VERSION } from "../../helpers/captures/recorded-cell.js";
import { frontsHere } from "../../helpers/http/fronts-here.js";
import { onEveryFront as handlersOnEveryFront } from "../../helpers/http/handler-server.js";
import { rawRequest } from "../../helpers/http/raw-http.js";
import { certificateFiles, TEST_CERTIFICATE } from "../../helpers/http/test-certificate.js";
import { listOf } from "../../helpers/list-of.js";
import { ChangingCell, PROGRAMS } from "../../helpers/live/changing-cell.js";
import { EventStream } from "../../helpers/live/event-stream.js";
import { ManualTimers } from "../../helpers/recorder/manual-timers.js";

interface Place {
  cell: ChangingCell;
  port: number;
  open(query?: string, headers?: Record<string, string>): Promise<EventStream>;
}

/** A test with a cell of its own on every front. */
function onEveryFront(name: string, run: (t: Test, place: Place) => Promise<void>, options?: LiveClientsOptions): void {
  for (const { name: frontName, front, uwsPackage } of frontsHere(t)) {
    t.test(`${name} (${frontName})`, async (t) => {
      const cell = new ChangingCell(options);
      const port = await cell.listenFor(t, { front, ...(uwsPackage !== undefined && { uwsPackage }) });
      await run(t, {
        cell,
        port,
        open: async (query, headers) => {
          const stream = await EventStream.open({ port, query: query ?? "", headers: headers ?? {} });
          t.teardown(() => stream.close());
          return stream;
        },
      });
    });
  }
}

const names = ({ events }: EventStream) => events.map(({ event }) => event).join();

onEveryFront("a stream says first from when it goes on, then each change", async (t, { cell, open }) => {
  const old = cell.create();
  const stream = await open();
  await stream.until(({ events }) => events.length > 0);
  const { headers, statusCode } = stream.response;
  t.equal(statusCode, 200);
  t.equal(headers["content-type"], "text/event-stream");
  t.equal(headers["cache-control"], "no-store");
  t.match(headers["x-trace-id"], /^[0-9a-f]{32}$/);
  t.equal(headers["content-length"], undefined);
  t.equal(stream.retryMs, 2000);
  const mark = formatTimeUs(cell.timeUs);
  const data = JSON.stringify({ updated_at: mark, service_version: FIXTURE_VERSION });
  t.strictSame(stream.events, [{ id: mark, event: "ready", data }]);

  cell.start(old);
  await stream.until(({ events }) => events.length > 1);
  t.equal(names(stream), "ready,run");
  t.match(stream.rows, listOf({ id: old, status: "running", updated_at: stream.lastId }));
  t.match(stream.rows[0]?.links?.self.href, /^http:\/\/127\.0\.0\.1:\d+\/runs\/019c13ec/);
});

onEveryFront("the metrics count streams, and what they told", async (t, { cell, port, open }) => {
  const stream = await open();
  await stream.until(({ events }) => events.length === 1);
  cell.create();
  await stream.until(({ events }) => events.length === 2);
  const metrics = await rawRequest(port, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  const lines = metrics?.body.toString().split("\n") ?? [];
  for (const line of [
    'inspection_live_clients{kind="changes"} 1',
    'inspection_live_clients{kind="run"} 0',
    'inspection_live_events_total{kind="changes"} 1',
  ]) {
    t.ok(lines.includes(line), line);
  }
});

onEveryFront("changes of several runs come in their order, each run once", async (t, { cell, open }) => {
  const [a, b, c] = [cell.create(), cell.create(), cell.create()];
  const stream = await open("?updated_since=2020-01-01T00:00:00Z");
  cell.start(c);
  cell.start(a);
  cell.note(b);
  cell.note(a);
  await stream.until(({ lastId }) => lastId === formatTimeUs(cell.timeUs));
  const rows = stream.rows.filter(({ id }, at) => stream.rows.findLastIndex((row) => row.id === id) === at);
  t.strictSame(
    rows.map(({ id }) => id),
    [c, b, a],
  );
  t.strictSame(
    stream.rows.map(({ updated_at }) => updated_at),
    stream.rows.map(({ updated_at }) => updated_at).sort(),
  );
});

onEveryFront("a backlog of many runs comes whole and in order", async (t, { cell, open }) => {
  for (let n = 0; n < 1500; n++) cell.create(PROGRAMS[n % 2], n % 7 === 0 ? "SN-7" : null);
  for (const id of cell.active.slice(100, 1000)) cell.start(id);
  const stream = await open("?updated_since=2020-01-01T00:00:00Z");
  await stream.until(({ lastId }) => lastId === formatTimeUs(cell.timeUs));
  const ids = stream.events.map(({ id }) => id);
  t.strictSame(ids, [...ids].sort());
  t.equal(new Set(stream.rows.map(({ id }) => id)).size, 1500);
  const some = await open(
    `?updated_since=2020-01-01T00:00:00Z&serial_number=SN-7&program_id=${PROGRAMS[0].toUpperCase()}`,
  );
  cell.create(PROGRAMS[0], "SN-7");
  await some.until(({ lastId }) => lastId === formatTimeUs(cell.timeUs));
  t.equal(some.rows.length, 109);
  t.ok(some.rows.every((row) => row.serial_number === "SN-7" && row.program_id === PROGRAMS[0]));
});

onEveryFront("the filter: a run that leaves it comes once more, another never", async (t, { cell, open }) => {
  const leaving = cell.create();
  const other = cell.create();
  cell.start(leaving);
  const running = await open("?status=running");
  const failed = await open("?status=failed");
  const absent = await open("?status=no-such-status");
  await Promise.all([running, failed, absent].map((one) => one.until(({ events }) => events.length === 1)));
  cell.note(other);
  cell.finish(leaving);
  await running.until(({ events }) => events.length === 2);
  t.match(running.rows, listOf({ id: leaving, status: "finalizing" }));
  // The run has left the filter. Changes that leave its status alone are not sent to this client any more.
  cell.note(leaving);
  cell.start(other);
  await running.until(({ events }) => events.length === 3);
  t.match(running.rows[1], { id: other, status: "running" });
  cell.endAs(other, "failed");
  await failed.until(({ events }) => events.length === 2);
  t.match(failed.rows, listOf({ id: other, status: "failed" }));
  await running.until(({ events }) => events.length === 4);
  t.match(running.rows[2], { id: other, status: "failed" });
  t.equal(names(absent), "ready");
});

onEveryFront("it goes on from a mark: Last-Event-ID wins over updated_since", async (t, { cell, open }) => {
  const [a, b] = [cell.create(), cell.create()];
  const first = await open();
  cell.start(a);
  await first.until(({ events }) => events.length === 2);
  first.close();
  cell.start(b);
  const again = await open("?updated_since=2020-01-01T00:00:00Z", { "Last-Event-ID": first.lastId as string });
  await again.until(({ events }) => events.length === 2);
  t.equal(again.events[0]?.id, first.lastId);
  t.match(again.rows, listOf({ id: b, status: "running" }));
  t.match(
    (await open("?updated_since=", { "Last-Event-ID": "" })).response.statusCode,
    200,
    "empty ones count as absent",
  );
});

onEveryFront("a mark that this store never reached: the client is told to list anew", async (t, { cell, open }) => {
  cell.create();
  const mark = formatTimeUs(cell.timeUs);
  const stream = await open("", { "Last-Event-ID": "2027-01-01T00:00:00.000000Z" });
  await stream.until(({ events }) => events.length === 2);
  t.match(stream.events, listOf({ event: "ready", id: mark }, { event: "reset", id: mark }));
  t.match(JSON.parse(stream.events[1]?.data ?? ""), { updated_at: mark, reason: /2027-01-01.* is later than/ });
  const id = cell.create();
  await stream.until(({ rows }) => rows.length === 1);
  t.equal(stream.rows[0]?.id, id);
});

onEveryFront("a bad mark or filter is refused before any event", async (t, { port, open }) => {
  for (const [query, field] of [
    ["?updated_since=yesterday", "updated_since"],
    ["?program_id=7", "program_id"],
    ["?status=running&status=failed", "status"],
  ] as const) {
    const refused = await rawRequest(port, `GET /runs/changes${query} HTTP/1.1\r\nHost: x\r\n\r\n`);
    t.equal(refused?.status, 422, query);
    t.match(refused?.json(), { code: "invalid_parameter", params: { field, in: "query" } });
  }
  const bad = "GET /runs/changes HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 7\r\n\r\n";
  const refused = await rawRequest(port, bad);
  t.equal(refused?.status, 422);
  t.match(refused?.json(), { params: { field: "last-event-id", in: "header", value: "7" } });
  t.equal((await open("?page=7")).response.statusCode, 200, "an unknown parameter is ignored");
  const head = await rawRequest(port, "HEAD /runs/changes HTTP/1.1\r\nHost: x\r\n\r\n", "HEAD");
  t.equal(head?.status, 200);
});

onEveryFront(
  "above the limit a stream is refused for a while, and one that leaves makes room",
  async (t, { cell, port, open }) => {
    const streams = [await open(), await open()];
    const refused = await rawRequest(port, "GET /runs/changes HTTP/1.1\r\nHost: x\r\n\r\n");
    t.equal(refused?.status, 503);
    t.match(refused?.headers, { "retry-after": /^\d+$/ });
    t.match(refused?.json(), {
      code: "unavailable",
      message: /^2 clients already follow changes, the most that --live-streams allows$/,
    });
    t.equal(cell.live.figures.changes.open, 2);
    streams[0]?.close();
    let third = await open();
    while (third.response.statusCode === 503) third = await open();
    t.equal(third.response.statusCode, 200);
    // Only bytes that were sent before a client left count as told, so a client that stays is used here.
    await third.until(({ events }) => events.length === 1);
    cell.create();
    await third.until(({ events }) => events.length === 2);
    t.equal(cell.live.figures.changes.open, 2);
  },
  { limit: 2 },
);

onEveryFront("a page of another origin opens none", async (t, { port }) => {
  for (const line of ["Origin: https://elsewhere.example", "Sec-Fetch-Site: cross-site"]) {
    const refused = await rawRequest(port, `GET /runs/changes HTTP/1.1\r\nHost: x\r\n${line}\r\n\r\n`);
    t.equal(refused?.status, 403, line);
    t.match(refused?.json(), { code: "forbidden", params: { field: "origin" } });
  }
});

const timers = new ManualTimers();

onEveryFront(
  "a comment line every 15 s keeps a silent stream open",
  async (t, { cell, open }) => {
    const stream = await open();
    await stream.until(({ events }) => events.length === 1);
    for (let beat = 1; beat <= 3; beat++) {
      timers.advance(14_999);
      t.equal(cell.live.beats, beat - 1);
      timers.advance(1);
      await stream.until(({ comments }) => comments.length === beat);
    }
    t.equal(names(stream), "ready");
  },
  { limit: 512, timers },
);

onEveryFront("at a stop all streams end at once, one that reads nothing too", async (t, { cell, open }) => {
  const streams = await Promise.all(Array.from({ length: 2 }, () => open()));
  const stalled = await open("?updated_since=2020-01-01T00:00:00Z");
  stalled.response.pause();
  for (let n = 0; n < 150; n++) cell.create(PROGRAMS[0], null, { note: "x".repeat(60_000) });
  await Promise.all(streams.map((one) => one.until(({ rows }) => rows.length === 150)));
  const graceMs = 20_000;
  const beginMs = performance.now();
  await cell.close(graceMs);
  await Promise.all(streams.map((one) => one.ended()));
  t.ok(performance.now() - beginMs < graceMs / 2);
  t.ok(
    streams.every(({ response }) => response.complete),
    "with the end of their answers",
  );
  stalled.response.resume();
  await stalled.ended();
  t.ok(stalled.rows.length < 150);
});

onEveryFront("at a stop a client that keeps connections reads a clean end", async (t, { cell, port }) => {
  const response = await fetch(`http://127.0.0.1:${port}/runs/changes`);
  const text = response.text();
  await cell.close(20_000);
  t.match(await text, /event: ready.*\n\n$/s);
});

for (const isTls of [false, true]) {
  const name = `a client that reads slowly gets every event, the last at once${isTls ? " over TLS" : ""}`;
  handlersOnEveryFront(t, name, async (t, serve) => {
    const over = new AbortController();
    const lines = Array.from(
      { length: 512 },
      (_, at) =>
        `${String(at)
          .repeat(64 * 1024)
          .slice(0, 64 * 1024)}\n`,
    );
    let given = 0;
    const next = async () => {
      if (given === lines.length) await once(over.signal, "abort");
      return over.signal.aborted ? undefined : Buffer.from(lines[given++] as string);
    };
    const live = { cut: over.signal, next, filler: Buffer.from(":"), release() {} };
    const handle = () => ({ status: 200, body: null, live });
    const tls = isTls ? { tls: certificateFiles(t) } : {};
    const { port } = await serve(t, { "/x": { live: "stream", handle } }, tls);
    t.teardown(() => over.abort());
    const options = { host: "127.0.0.1", port, path: "/x", agent: false, ca: TEST_CERTIFICATE };
    const [response] = (await once((isTls ? getTls : get)(options), "response")) as [IncomingMessage];
    let text = "";
    for await (const bytes of response) {
      text += String(bytes).replaceAll(":", "");
      if (text.length >= lines.length * (lines[0] as string).length) break;
    }
    t.ok(text === lines.join(""));
  });
}
