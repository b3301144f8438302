/**
 * A process of clients that do all the harm they can from outside, until SIGTERM: then one line of JSON says how often each of them did it.
 * Arguments: the ports of HTTP and of the cell link over TCP, the path of the link's socket, paths of large documents,
 * separated by commas.
 */
import { randomUUID } from "node:crypto";
import { connect, type NetConnectOpts, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { encodeFrame, type FrameToSend } from "../../../workers/cell-link/frame-codec.js";
import { sized } from "../test-size.js";

const [httpPort, linkPort, linkPath, paths] = process.argv.slice(2) as [string, string, string, string];
const largePaths = paths.split(",");

const IDLE = 300;
const SLOW_HEADS = 40;
/** More than there is room for. Each of the few beyond it pushes another one out, at every redial. */
const STALLED_UPLOADS = 514;
const STALLED_READERS = 10;
const HEAVY_READERS = 12;
const WITHOUT_HELLO_ON_SOCKET = 30;
const WITHOUT_HELLO_ON_TCP = 60;
const WRONG_TOKENS = 4;
const ANNOUNCED_PAYLOADS = 12;
const REFUSAL_FLOODS = 4;
const REFUSALS_AT_ONCE = 10;
/** In a commit's size other tests run beside this one. Hostile clients that redial at once would take half of the machine from them. */
const REDIAL_MS = sized(250, 50);
/** A document that takes long to make costs as much as all the rest. */
const HEAVY_REDIAL_MS = sized(1_000, 50);
const SLOW_BYTE_MS = 500;
const LARGEST_PAYLOAD_BYTES = 64 * 1024 * 1024;
/** How much of it comes. */
const BEGUN_PAYLOAD_BYTES = [0, 1, 100_000, 2 * 1024 * 1024];

const counts: Record<string, number> = {};
/** Connections that are open now, by what they do. */
const open: Record<string, number> = {};
const mostOpen: Record<string, number> = {};

function count(what: string): void {
  counts[what] = (counts[what] ?? 0) + 1;
}

let lastHost = 0;
/** Hostile clients come from other addresses than honest ones, and from several. */
function http(): NetConnectOpts {
  lastHost = (lastHost + 1) % 8;
  return { port: Number(httpPort), host: "127.0.0.1", localAddress: `127.0.0.${lastHost + 2}` };
}
const linkTcp = (): NetConnectOpts => ({ port: Number(linkPort), host: "127.0.0.1" });
const linkSocket = (): NetConnectOpts => ({ path: linkPath });

/** Opens the connection, lets `begin` do its harm, and resolves when it is closed. */
function attack(what: string, to: NetConnectOpts, begin: (socket: Socket) => void): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(to);
    let isOpen = false;
    socket.on("error", () => {});
    socket.on("connect", () => {
      isOpen = true;
      count(what);
      open[what] = (open[what] ?? 0) + 1;
      mostOpen[what] = Math.max(mostOpen[what] ?? 0, open[what]);
      begin(socket);
    });
    socket.on("close", () => {
      if (isOpen) open[what]!--;
      resolve();
    });
    // Clients take answers without looking at them, except for those that stall.
    socket.resume();
  });
}

/** Keeps so many of them for ever: each comes again when the service has closed it. */
function always(
  what: string,
  clients: number,
  to: () => NetConnectOpts,
  begin: (socket: Socket, at: number) => void,
  redialMs = REDIAL_MS,
): void {
  for (let at = 0; at < clients; at++) {
    void (async () => {
      for (;;) {
        await attack(what, to(), (socket) => begin(socket, at));
        await pause(redialMs);
      }
    })();
  }
}

function sendFrame(socket: Socket, frame: FrameToSend): void {
  for (const part of encodeFrame(frame)) socket.write(part);
}

function slowHead(socket: Socket): void {
  const head = `GET /runs HTTP/1.1\r\nHost: x\r\nX-Slow: ${"s".repeat(4_000)}`;
  let sent = 0;
  const timer = setInterval(() => socket.write(head[sent++ % head.length] as string), SLOW_BYTE_MS);
  socket.on("close", () => clearInterval(timer));
}

function stalledUpload(socket: Socket): void {
  socket.write(
    "POST /webhooks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 65536\r\n\r\n{",
  );
}

function stalledReader(socket: Socket): void {
  socket.write(`GET ${largePaths[0]} HTTP/1.1\r\nHost: x\r\n\r\n`);
  socket.pause();
}

let heavyReads = 0;
/** Asks for a document that takes long to make; every other one leaves before it comes. */
function heavyReader(socket: Socket): void {
  const path = largePaths[Math.floor(heavyReads / 2) % largePaths.length];
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  if (heavyReads++ % 2 === 0) setTimeout(() => socket.destroy(), 20);
}

function wrongToken(socket: Socket): void {
  const body = { protocol: 1, producer: "guess", instance: randomUUID(), token: `guess-${counts.wrongToken}` };
  sendFrame(socket, { kind: "hello", sequence: 0, body });
}

/** Says hello, then announces the largest payload and sends little of it. */
function announcedPayload(socket: Socket, at: number): void {
  const producer = `announcing-${at}`;
  sendFrame(socket, { kind: "hello", sequence: 0, body: { protocol: 1, producer, instance: randomUUID() } });
  socket.once("data", () => {
    const [head] = encodeFrame({ kind: "message", sequence: 1, body: { type: "x" }, payload: new Uint8Array(8) });
    const announced = Buffer.from(head as Uint8Array);
    announced.writeUInt32LE(LARGEST_PAYLOAD_BYTES, 20);
    socket.write(announced);
    socket.write(Buffer.alloc(BEGUN_PAYLOAD_BYTES[at % BEGUN_PAYLOAD_BYTES.length] as number));
  });
}

const REFUSED = [
  `GET /nothing-${"n".repeat(3_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
  `GET /runs?limit=${"9".repeat(2_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
  `GET /runs HTTP/1.1\r\nHost: evil.example\r\n\r\n`,
  `GET /runs/${randomUUID()} HTTP/1.1\r\nHost: x\r\n\r\n`,
];

/** Requests that are refused, some hundred a second and connection. */
function refusalFlood(socket: Socket): void {
  const timer = setInterval(() => {
    for (let at = 0; at < REFUSALS_AT_ONCE; at++) socket.write(REFUSED[at % REFUSED.length] as string);
    counts.refused = (counts.refused ?? 0) + REFUSALS_AT_ONCE;
  }, REDIAL_MS);
  socket.on("close", () => clearInterval(timer));
}

always("idle", IDLE, http, () => {});
always("slowHead", SLOW_HEADS, http, slowHead);
always("stalledUpload", STALLED_UPLOADS, http, stalledUpload);
always("stalledReader", STALLED_READERS, http, stalledReader);
always("heavyReader", HEAVY_READERS, http, heavyReader, HEAVY_REDIAL_MS);
always("withoutHelloOnSocket", WITHOUT_HELLO_ON_SOCKET, linkSocket, () => {});
always("withoutHelloOnTcp", WITHOUT_HELLO_ON_TCP, linkTcp, () => {});
always("wrongToken", WRONG_TOKENS, linkTcp, wrongToken);
always("announcedPayload", ANNOUNCED_PAYLOADS, linkSocket, announcedPayload);
always("refusalFlood", REFUSAL_FLOODS, http, refusalFlood);

process.once("SIGTERM", () => {
  process.stdout.write(`${JSON.stringify({ counts, mostOpen })}\n`, () => process.exit(0));
});
console.log("begun");
