import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { verifyWebhook } from "../../core/webhook/verify-webhook.js";

/** What is registered for one receiver: the body of POST /webhooks. */
export interface DemoWebhook {
  name: string;
  url: string;
  subscribed_events: string[];
  on_failure_mode: "IGNORE" | "WARN";
  secret: string | null;
}

export interface DemoReceiver {
  /** Takes every event, and only with a valid signature. */
  readonly signed: DemoWebhook;
  /** Answers 503 to the first attempt of each event and takes the second. */
  readonly busy: DemoWebhook;
  /** Answers 503 to all attempts that the service makes by itself, and takes the event when it is sent once more by hand. */
  readonly down: DemoWebhook;
  close(): void;
}

const HEAD_END = "\r\n\r\n";
/** Larger than any head that the dispatcher sends. */
const MAXIMUM_HEAD_BYTES = 16 * 1024;
/** Events whose attempts are counted: far more than are under way. */
const COUNTED_EVENTS = 1_000;
const REFUSED_ATTEMPTS: Record<string, number> = { "/demo-receiver/busy": 1, "/demo-receiver/down": 4 };

/** Starts the receivers of webhooks that the demo delivers to, on a free port of the loopback. */
export async function startDemoReceiver(): Promise<DemoReceiver> {
  const secret = randomBytes(24).toString("hex");
  const answer = answersOf(secret);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    // The dispatcher went away: there is nothing to answer any more.
    socket.on("error", () => socket.destroy());
    answerRequests(socket, answer);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // A connection that could not be accepted: the delivery comes again.
  server.on("error", () => {});
  const { port } = server.address() as AddressInfo;
  const base = `http://127.0.0.1:${port}/demo-receiver`;
  const started = "ProgramStarted";
  const ends = ["ProgramCompleted", "ProgramFailed", "ProgramCancelled"];
  const bad = ["ProgramFailed", "ProgramCancelled"];
  return {
    signed: webhook("demo receiver", base, [started, ...ends], { secret }),
    busy: webhook("demo receiver, busy at first", `${base}/busy`, ends),
    down: webhook("demo receiver, down", `${base}/down`, bad, { on_failure_mode: "WARN" }),
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

function webhook(name: string, url: string, events: string[], settings: Partial<DemoWebhook> = {}): DemoWebhook {
  return { name, url, subscribed_events: events, on_failure_mode: "IGNORE", secret: null, ...settings };
}

interface Request {
  path: string;
  /** Names in lower case. */
  headers: Record<string, string>;
  body: Buffer;
}

type Answer = "204 No Content" | "401 Unauthorized" | "503 Service Unavailable";

function answersOf(secret: string): (request: Request) => Answer {
  /** Attempts by path and event. */
  const attempts = new Map<string, number>();
  return ({ path, headers, body }) => {
    const refused = REFUSED_ATTEMPTS[path];
    if (refused === undefined) {
      try {
        verifyWebhook({ secret, headers, body });
        return "204 No Content";
      } catch {
        return "401 Unauthorized";
      }
    }
    const key = `${path} ${headers["webhook-id"]}`;
    const attempt = (attempts.get(key) ?? 0) + 1;
    // Set again at the end, so that the oldest comes first.
    attempts.delete(key);
    attempts.set(key, attempt);
    for (const oldest of attempts.keys()) if (attempts.size > COUNTED_EVENTS) attempts.delete(oldest);
    return attempt > refused ? "204 No Content" : "503 Service Unavailable";
  };
}

/** Reads as much of HTTP as the dispatcher sends: a head with a Content-Length, and the body. */
function answerRequests(socket: Socket, answer: (request: Request) => Answer): void {
  let head = "";
  let request: Request | undefined;
  let body = "";
  let bodyBytesLeft = 0;
  socket.setEncoding("latin1");
  socket.on("data", (chunk: string) => {
    for (let rest = chunk; rest !== ""; ) {
      if (request === undefined) {
        head += rest;
        const end = head.indexOf(HEAD_END);
        if (end < 0) {
          if (head.length > MAXIMUM_HEAD_BYTES) socket.destroy();
          return;
        }
        rest = head.slice(end + HEAD_END.length);
        request = readHead(head.slice(0, end));
        bodyBytesLeft = Number(request.headers["content-length"] ?? 0);
        head = "";
        body = "";
      }
      const taken = rest.slice(0, bodyBytesLeft);
      body += taken;
      bodyBytesLeft -= taken.length;
      rest = rest.slice(taken.length);
      if (bodyBytesLeft > 0) continue;
      const status = answer({ ...request, body: Buffer.from(body, "latin1") });
      const length = status.startsWith("204") ? "" : "Content-Length: 0\r\n";
      socket.write(`HTTP/1.1 ${status}\r\n${length}\r\n`);
      request = undefined;
    }
  });
}

function readHead(head: string): Request {
  const [requestLine = "", ...lines] = head.split("\r\n");
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(":");
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  return { path: requestLine.split(" ")[1] ?? "", headers, body: Buffer.alloc(0) };
}
