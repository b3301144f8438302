import t from "tap";
import { frontsHere } from "../../helpers/http/fronts-here.js";
import { until } from "../../helpers/http/handler-server.js";
import { RawConnection, rawRequest } from "../../helpers/http/raw-http.js";
import { ChangingCell } from "../../helpers/live/changing-cell.js";
import { RunSocketClient } from "../../helpers/live/run-socket-client.js";
import { closePayload, frame, handshakeRequest } from "../../helpers/live/socket-frames.js";
import { ManualTimers } from "../../helpers/recorder/manual-timers.js";

const NO_UTF8 = Buffer.from([0xff]);
const UNMASKED = "\x81\x01a";
const PING = "\x89\x00";

/**
 * Breaches of the protocol, and their close codes. uWebSockets.js gives no code: it cuts the connection, after an empty
 * close frame if the breach is in a close frame. It does not see that a mask is missing: it takes the next bytes for one.
 * So this client's answers to pings are lost, and the second ping cuts it.
 */
const BROKEN: [what: string, frames: string, code: number][] = [
  ["a frame without a mask", UNMASKED, 1002],
  ["a reserved opcode", frame(0x83, "a"), 1002],
  ["a reserved opcode of a control frame", frame(0x8b, "a"), 1002],
  ["the reserved bit of an extension that was not agreed", frame(0xc1, "a"), 1002],
  ["another reserved bit", frame(0xa1, "a"), 1002],
  ["a reserved bit of a ping", frame(0x99, "a"), 1002],
  ["a ping in fragments", frame(0x09, "a"), 1002],
  ["a close frame in fragments", frame(0x08), 1002],
  ["a ping of 126 bytes", frame(0x89, "x".repeat(126)), 1002],
  ["a continuation of nothing", frame(0x80, "a"), 1002],
  ["a continuation after the last one", frame(0x01, "a") + frame(0x80, "b") + frame(0x80, "c"), 1002],
  ["a new message within a message", frame(0x01, "a") + frame(0x81, "b"), 1002],
  ["the close code for no code", frame(0x88, closePayload(1005)), 1002],
  ["the close code for no close frame", frame(0x88, closePayload(1006)), 1002],
  ["a close code below 1000", frame(0x88, closePayload(999)), 1002],
  ["half a close code", frame(0x88, "a"), 1002],
  ["a text without UTF-8", frame(0x81, NO_UTF8), 1007],
  [
    "a text of which a fragment ends within a character",
    frame(0x01, Buffer.from("ä").subarray(0, 1)) + frame(0x80, "a"),
    1007,
  ],
  ["a close reason without UTF-8", frame(0x88, closePayload(1000, NO_UTF8)), 1007],
];

const hex = (latin1: string): string => Buffer.from(latin1, "latin1").toString("hex");

const closeFrame = (code: number): string => `\x88\x02${Buffer.from(closePayload(code)).toString("latin1")}`;

async function metrics(port: number): Promise<string> {
  return String((await rawRequest(port, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"))?.body);
}

for (const { name, front, uwsPackage } of frontsHere(t)) {
  t.test(`who breaks the protocol is closed or cut, and nobody else (${name})`, async (t) => {
    const cell = new ChangingCell();
    const pingTimers = new ManualTimers();
    const port = await cell.listenFor(t, { front, pingTimers, ...(uwsPackage !== undefined && { uwsPackage }) });
    const id = cell.create();
    const other = new RunSocketClient(port, id);
    t.teardown(() => other.ws.terminate());
    /** After it, the service has what the other client sent before. */
    const roundTrip = async () => {
      const { length } = other.pongs;
      other.ws.ping();
      await other.until(({ pongs }) => pongs.length > length);
    };
    await other.until(({ messages }) => messages.length === 1);
    for (const [what, frames, code] of BROKEN) {
      const connection = await RawConnection.open(port);
      t.teardown(() => connection.close());
      connection.send(handshakeRequest(id));
      t.equal((await connection.response())?.status, 101);
      // A ping within a message is answered before.
      connection.send(frame(0x01, "a") + frame(0x89, "p") + frame(0x80, "b"));
      await until(() => connection.rest.endsWith("\x8a\x01p"));
      const { receivedBytes } = connection;
      connection.send(frames);
      const isUnseen = front === "uws" && frames === UNMASKED;
      if (isUnseen) {
        await roundTrip();
        pingTimers.advance(30_000);
        await other.until(({ pings }) => pings === 1);
        await roundTrip();
        pingTimers.advance(30_000);
      }
      await connection.closed;
      const said = front !== "uws" ? closeFrame(code) : frames.startsWith("\x88") ? "\x88\x00" : isUnseen ? PING : "";
      t.equal(hex(connection.rest.slice(receivedBytes)), hex(said), what);
      const { length } = other.messages;
      cell.note(id);
      await other.until(({ messages }) => messages.length > length);
      // A lost client is forgotten soon after its connection; the test's time limit bounds the wait.
      while (!(await metrics(port)).includes('\ninspection_live_clients{kind="run"} 1\n'));
    }
  });
}
