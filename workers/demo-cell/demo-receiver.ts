import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
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

/** Events whose attempts are counted: far more than are under way. */
const COUNTED_EVENTS = 1_000;
const REFUSED_ATTEMPTS: Record<string, number> = { "/demo-receiver/busy": 1, "/demo-receiver/down": 4 };

/** Starts the receivers of webhooks that the demo delivers to, on a free port of the loopback. */
export async function startDemoReceiver(): Promise<DemoReceiver> {
  const secret = randomBytes(24).toString("hex");
  const answer = answersOf(secret);
  const server = createServer((request, response) => {
    buffer(request).then(
      (body) => response.writeHead(answer(request.url ?? "", request.headers, body)).end(),
      // The dispatcher went away: there is nothing to answer any more.
      () => {},
    );
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
      server.closeAllConnections();
    },
  };
}

function webhook(name: string, url: string, events: string[], settings: Partial<DemoWebhook> = {}): DemoWebhook {
  return { name, url, subscribed_events: events, on_failure_mode: "IGNORE", secret: null, ...settings };
}

type Answer = 204 | 401 | 503;

function answersOf(secret: string): (path: string, headers: IncomingHttpHeaders, body: Buffer) => Answer {
  /** Attempts by path and event. */
  const attempts = new Map<string, number>();
  return (path, headers, body) => {
    const refused = REFUSED_ATTEMPTS[path];
    if (refused === undefined) {
      try {
        verifyWebhook({ secret, headers, body });
        return 204;
      } catch {
        return 401;
      }
    }
    const key = `${path} ${headers["webhook-id"]}`;
    const attempt = (attempts.get(key) ?? 0) + 1;
    // Set again at the end, so that the oldest comes first.
    attempts.delete(key);
    attempts.set(key, attempt);
    for (const oldest of attempts.keys()) if (attempts.size > COUNTED_EVENTS) attempts.delete(oldest);
    return attempt > refused ? 204 : 503;
  };
}
