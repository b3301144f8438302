import { LRUCache } from "lru-cache";
import type { Dispatcher } from "undici";
import { LIMITS } from "../../../core/limits.js";
import type { DeliveryAttempt } from "../../../core/webhook/delivery.js";
import { signatureHeaders } from "../../../core/webhook/webhook-signature.js";
import { failureText, isClosed, lackOf, statusFault } from "./delivery-failures.js";
import type { DeliveryJob } from "./dispatcher-messages.js";
import { ReceiverAnswer } from "./receiver-answer.js";
import type { ReceiverConnection, ReceiverConnections } from "./receiver-connections.js";

export interface DeliveryRequest
  extends Pick<DeliveryJob, "url" | "signers" | "headers" | "eventId" | "eventName" | "payload"> {
  userAgent: string;
  /** Time of the attempt, in seconds since the Unix epoch. */
  timestampSeconds: number;
}

/** `lacking`: what the machine lacked for the connection, for people. Nothing was sent, and it does not count as an attempt. */
export type DeliveryOutcome =
  | Omit<DeliveryAttempt, "attemptNumber" | "startedAtUs" | "completedAtUs">
  | { readonly lacking: string };

export interface SentRequest {
  /** Ends the attempt, because its time is over. Calls `onEnd` at once, with what has come until now. @param fault text for people */
  timeOut(fault: string): void;
}

/**
 * Posts one attempt. `onEnd` is called exactly once. Only the status decides whether the receiver took it; the body is kept as far as
 * there is time and room.
 *
 * A receiver may close a connection after any answer, even while the next request is on its way (RFC 9112, 9.3 and 9.5). So if a
 * connection that was used before closes before an answer begins, that says nothing about this event. It is posted again over a new
 * connection, within the same attempt. If the receiver took the first request nevertheless, it gets the event twice; this is what
 * at-least-once delivery and `event_id` are for.
 */
export function sendDelivery(
  connections: ReceiverConnections,
  request: DeliveryRequest,
  onEnd: (outcome: DeliveryOutcome) => void,
): SentRequest {
  const attempt = new SentDelivery(connections, request, onEnd);
  attempt.send();
  return attempt;
}

class SentDelivery implements SentRequest {
  readonly #connections: ReceiverConnections;
  readonly #onEnd: (outcome: DeliveryOutcome) => void;
  readonly #origin: string;
  readonly #post: Dispatcher.DispatchOptions;
  readonly #answer = new ReceiverAnswer();
  #connection: ReceiverConnection | undefined;
  /** The request was written, over whichever connection: the receiver may have it. */
  #isWritten = false;
  #hasEnded = false;

  constructor(connections: ReceiverConnections, request: DeliveryRequest, onEnd: (outcome: DeliveryOutcome) => void) {
    this.#connections = connections;
    this.#onEnd = onEnd;
    const { origin, path } = placeOf(request.url);
    this.#origin = origin;
    // The caller's own timer bounds the whole attempt.
    const timeouts = { headersTimeout: 0, bodyTimeout: 0 };
    this.#post = { origin, path, method: "POST", headers: headersOf(request), body: request.payload, ...timeouts };
  }

  send(): void {
    this.#sendOver(this.#connections.take(this.#origin));
  }

  timeOut(fault: string): void {
    this.#endWith(fault);
    if (this.#connection !== undefined) this.#connections.drop(this.#connection);
  }

  #sendOver(connection: ReceiverConnection): void {
    const connections = this.#connections;
    this.#connection = connection;
    const { connects } = connection;
    let hasAnswerBegun = false;
    connection.dispatch(this.#post, {
      onConnect: () => {
        this.#isWritten = true;
      },
      onHeaders: (statusCode, raw) => {
        hasAnswerBegun = true;
        // A status 1xx is not the answer yet.
        if (statusCode >= 200) this.#answer.takeHeaders(statusCode, raw);
        return true;
      },
      onData: (chunk) => {
        if (this.#answer.takeBody(chunk)) return true;
        this.#end(null);
        connections.drop(connection);
        return false;
      },
      onComplete: () => {
        // If the answer came early, the rest of this request's body would come before the next request.
        if (connection.isSending) connections.drop(connection);
        else connections.giveBack(connection);
        this.#end(null);
      },
      onUpgrade: (_statusCode, _headers, socket) => {
        socket.destroy();
        connections.drop(connection);
        this.#end("the receiver answered with another protocol");
      },
      onError: (error) => {
        connections.drop(connection);
        if (this.#hasEnded) return;
        const wasUsed = connects > 0 && connection.connects === connects;
        const lacking = this.#isWritten ? null : lackOf(error);
        if (wasUsed && !hasAnswerBegun && isClosed(error)) this.#sendOver(connections.open(this.#origin));
        else if (lacking !== null) this.#endUnsent(lacking);
        else this.#endWith(failureText(error));
      },
    });
  }

  /** Ends it whatever the connection does. If the answer has begun, it counts. */
  #endWith(failure: string): void {
    const isAnswered = this.#answer.statusCode !== null;
    if (isAnswered) this.#answer.truncate();
    this.#end(isAnswered ? null : failure);
  }

  #endUnsent(lacking: string): void {
    this.#hasEnded = true;
    this.#onEnd({ lacking });
  }

  #end(failure: string | null): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const { statusCode, headers, body, isTruncated } = this.#answer;
    const kept = { responseHeaders: headers, responseBody: body, responseTruncated: isTruncated };
    this.#onEnd({ statusCode, ...kept, error: failure ?? statusFault(statusCode) });
  }
}

/** Names and values in turn. Custom headers come last; none of them has a name of those before. */
function headersOf(request: DeliveryRequest): string[] {
  const { payload, signers, eventId, eventName, timestampSeconds, userAgent } = request;
  const headers = [
    ...["Content-Type", "application/json", "User-Agent", userAgent],
    ...["X-Service-Event", eventName, "webhook-id", eventId],
  ];
  for (const [name, value] of Object.entries(signatureHeaders(signers, eventId, timestampSeconds, payload))) {
    if (name !== "webhook-id") headers.push(name, value);
  }
  for (const [name, value] of request.headers) headers.push(name, value);
  return headers;
}

/** Parsed addresses: the same few are posted to again and again. */
const places = new LRUCache<string, { origin: string; path: string }>({ max: LIMITS.webhooks });

function placeOf(url: string): { origin: string; path: string } {
  const known = places.get(url);
  if (known !== undefined) return known;
  const { origin, pathname, search } = new URL(url);
  const place = { origin, path: pathname + search };
  places.set(url, place);
  return place;
}
