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
  /** Answers the first attempt of each event with 503 and takes the second. */
  readonly busy: DemoWebhook;
  /**
   * Answers all attempts that the service makes by itself with 503. It takes the event when somebody sends it again by
   * hand.
   */
  readonly down: DemoWebhook;
  close(): void;
}

/** Attempts are counted for this many events, far more than are delivered at a time. */
const COUNTED_EVENTS = 1_000;
const REFUSED_ATTEMPTS: Record<string, number> = { "/demo-receiver/busy": 1, "/demo-receiver/down": 4 };

/** Starts the receivers of webhooks that the demo delivers to, on a free port of the loopback. */
export async function startDemoReceiver(): Promise<DemoReceiver> {
  const secret = randomBytes(24).toString("hex");
  const answer = answersOf(secret);
  const server = createServer((request, response) => {
    buffer(request).then(
      (body) => response.writeHead(answer(request.url ?? "", request.headers, body)).end(),
      // The dispatcher has closed the connection, so there is nobody to answer.
      () => {},
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // A connection could not be accepted. The delivery comes again.
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
  /** Number of attempts, by path and event. */
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
    // It is set again at the end of the map, so that the oldest event comes first.
    attempts.delete(key);
    attempts.set(key, attempt);
    for (const oldest of attempts.keys()) if (attempts.size > COUNTED_EVENTS) attempts.delete(oldest);
    return attempt > refused ? 204 : 503;
  };
}
