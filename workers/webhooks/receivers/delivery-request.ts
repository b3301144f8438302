import { LRUCache } from "lru-cache";
import { LIMITS } from "../../../core/limits.js";
import type { EventName } from "../../../core/webhook/webhook.js";
import { signatureHeaders } from "../../../core/webhook/webhook-signature.js";
import { NameLookupError } from "../names/name-lookups.js";
import { ReceiverAnswer } from "./receiver-answer.js";
import type { ReceiverConnection, ReceiverConnections } from "./receiver-connections.js";
import { AddressRefusedError } from "./receiver-connector.js";

export interface DeliveryRequest {
  url: string;
  secret: string | null;
  eventId: string;
  eventName: EventName;
  payload: Uint8Array;
  userAgent: string;
  /** The attempt's own time. */
  timestampSeconds: number;
}

export interface DeliveryOutcome {
  statusCode: number | null;
  responseHeaders: Record<string, string> | null;
  responseBody: string | null;
  responseTruncated: boolean;
  /** Null: the receiver took it. */
  error: string | null;
}

export interface SentRequest {
  /** The attempt's time is over: `onEnd` is called at once, with what came until now. `fault` says what it was, for people. */
  timeOut(fault: string): void;
}

/**
 * Posts one attempt. `onEnd` is called exactly once. The status alone decides; what then comes of the body is kept as far as
 * there is time and room.
 *
 * A receiver may close a connection that it has answered on at any moment, also while the next request is on its way (RFC 9112, 9.3 and
 * 9.5). So a connection that had been used and was closed before an answer began says nothing about this event: it is posted once more,
 * within the same attempt, over a connection that is new. Should the receiver have taken the first one nevertheless, it has the event
 * twice, which at-least-once delivery and its `event_id` are for.
 */
export function sendDelivery(
  connections: ReceiverConnections,
  request: DeliveryRequest,
  onEnd: (outcome: DeliveryOutcome) => void,
): SentRequest {
  const answer = new ReceiverAnswer();
  let hasEnded = false;
  const end = (failure: string | null): void => {
    if (hasEnded) return;
    hasEnded = true;
    const { statusCode, headers, body, isTruncated } = answer;
    const kept = { responseHeaders: headers, responseBody: body, responseTruncated: isTruncated };
    onEnd({ statusCode, ...kept, error: failure ?? statusFault(statusCode) });
  };
  /** Ends it whatever the connection does; with an answer's head, the answer counts. */
  const endWith = (failure: string): void => {
    const isAnswered = answer.statusCode !== null;
    if (isAnswered) answer.truncate();
    end(isAnswered ? null : failure);
  };
  const { origin, path } = placeOf(request.url);
  const { payload, secret, eventId, eventName, timestampSeconds } = request;
  const headers = secret === null ? {} : signatureHeaders(secret, eventId, timestampSeconds, payload);
  headers["Content-Type"] = "application/json";
  headers["User-Agent"] = request.userAgent;
  headers["X-Service-Event"] = eventName;
  headers["webhook-id"] = eventId;
  // The caller's own timer bounds the whole attempt.
  const post = { origin, path, method: "POST", headers, body: payload, headersTimeout: 0, bodyTimeout: 0 } as const;
  let connection: ReceiverConnection;
  const send = (over: ReceiverConnection): void => {
    connection = over;
    const { connects } = over;
    let hasAnswerBegun = false;
    over.dispatch(post, {
      onConnect() {},
      onHeaders(statusCode, raw) {
        hasAnswerBegun = true;
        // 1xx are no answers yet.
        if (statusCode >= 200) answer.takeHeaders(statusCode, raw);
        return true;
      },
      onData(chunk) {
        if (answer.takeBody(chunk)) return true;
        end(null);
        connections.drop(over);
        return false;
      },
      onComplete() {
        // An answer that came early: the rest of this body would stand before the next request.
        if (over.isSending) connections.drop(over);
        else connections.giveBack(over);
        end(null);
      },
      onUpgrade(_statusCode, _headers, socket) {
        socket.destroy();
        connections.drop(over);
        end("the receiver answered with another protocol");
      },
      onError(error) {
        connections.drop(over);
        if (hasEnded) return;
        const wasUsed = connects > 0 && over.connects === connects;
        if (wasUsed && !hasAnswerBegun && isClosed(error)) send(connections.open(origin));
        else endWith(failureText(error));
      },
    });
  };
  send(connections.take(origin));
  return {
    timeOut(fault) {
      endWith(fault);
      connections.drop(connection);
    },
  };
}

/** Of addresses that were posted to lately: they are the same ones over and over. */
const places = new LRUCache<string, { origin: string; path: string }>({ max: LIMITS.webhooks });

function placeOf(url: string): { origin: string; path: string } {
  const known = places.get(url);
  if (known !== undefined) return known;
  const { origin, pathname, search } = new URL(url);
  const place = { origin, path: pathname + search };
  places.set(url, place);
  return place;
}

function statusFault(statusCode: number | null): string | null {
  if (statusCode === null) return "no answer";
  if (statusCode >= 200 && statusCode < 300) return null;
  if (statusCode >= 300 && statusCode < 400) return `the receiver answered ${statusCode}: redirects are not followed`;
  return `the receiver answered ${statusCode}`;
}

/** What undici ends a connection for although an answer began, by the message of its error. */
const REFUSED_ANSWERS: Record<string, string> = {
  "bad response": "the receiver answered 100, which was not asked for",
  "bad upgrade": "the receiver answered with another protocol",
};

/** The connection ended, by the receiver or on the way to it. */
function isClosed(error: Error): boolean {
  if (error.message in REFUSED_ANSWERS) return false;
  const { code } = error as { code?: unknown };
  return code === "UND_ERR_SOCKET" || code === "ECONNRESET" || code === "EPIPE";
}

/** Longest text of an error that is kept. */
const ERROR_CHARACTERS = 500;

const CLOSED = "the connection was closed before an answer came";

const FAILURES: Record<string, string> = {
  ECONNREFUSED: "the connection was refused",
  ECONNRESET: "the connection was reset",
  EPIPE: "the connection was reset",
  ENOTFOUND: "the host name does not resolve",
  EAI_AGAIN: "the host name does not resolve now",
  EHOSTUNREACH: "the host cannot be reached",
  ENETUNREACH: "the network cannot be reached",
  EADDRNOTAVAIL: "the host cannot be reached",
  EACCES: "the system does not allow the connection",
  EPERM: "the system does not allow the connection",
  EMFILE: "the service has too many connections and files open",
  ENFILE: "the machine has too many connections and files open",
  ENOMEM: "the machine has no memory left for the connection",
  EAGAIN: "the machine has no room left for the connection",
  ENOBUFS: "the machine has no buffer left for the connection",
  EPROTO: "TLS with the receiver failed",
  ETIMEDOUT: "the connection timed out",
  UND_ERR_CONNECT_TIMEOUT: "the connection timed out",
  UND_ERR_SOCKET: CLOSED,
  UND_ERR_INFO: CLOSED,
  // Of undici's parser: a status below 100.
  ERR_ASSERTION: "the answer is not HTTP",
  UND_ERR_HEADERS_OVERFLOW: "the answer's headers are too large",
};

/** What went wrong, for people: never more than the address and the kind of failure. */
function failureText(error: Error): string {
  if (error instanceof AddressRefusedError) return error.message;
  const { code } = error as { code?: unknown };
  if (typeof code === "string") {
    if (code.startsWith("HPE_")) return `the answer is not HTTP (${code})`;
    if (code.startsWith("ERR_SSL_")) return `${FAILURES.EPROTO} (${code})`;
    if (error instanceof NameLookupError) return `${FAILURES[code] ?? FAILURES.ENOTFOUND} (${code})`;
    const known = REFUSED_ANSWERS[error.message] ?? FAILURES[code];
    if (known !== undefined) return `${known} (${code})`;
  }
  // Several addresses of one name were tried.
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return failureText(error.errors[0]);
  return error.message.slice(0, ERROR_CHARACTERS).toWellFormed();
}
