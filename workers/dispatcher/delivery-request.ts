import type { Dispatcher as UndiciDispatcher } from "undici";
import type { EventName } from "../../core/webhook.js";
import { signatureHeaders } from "../../core/webhook-signature.js";
import { ReceiverAnswer } from "./receiver-answer.js";
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
  /** Null: the receiver took it. */
  error: string | null;
}

export interface SentRequest {
  /** The attempt's time is over: `onEnd` is called at once, with what came until now. */
  timeOut(timeoutMs: number): void;
}

/**
 * Posts one attempt. `onEnd` is called exactly once. The status alone decides; what then comes of the body is kept as far as
 * there is time and room.
 */
export function sendDelivery(
  agent: UndiciDispatcher,
  request: DeliveryRequest,
  onEnd: (outcome: DeliveryOutcome) => void,
): SentRequest {
  const answer = new ReceiverAnswer();
  let hasEnded = false;
  let abort: (() => void) | undefined;
  const end = (failure: string | null): void => {
    if (hasEnded) return;
    hasEnded = true;
    const { statusCode, headers, body } = answer;
    onEnd({ statusCode, responseHeaders: headers, responseBody: body, error: failure ?? statusFault(statusCode) });
  };
  /** Ends it whatever the connection does; with an answer's head, the answer counts. */
  const endWith = (failure: string): void => {
    const isAnswered = answer.statusCode !== null;
    if (isAnswered) answer.cut();
    end(isAnswered ? null : failure);
  };
  const { origin, pathname, search } = new URL(request.url);
  const { payload, secret, eventId, eventName, timestampSeconds } = request;
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    "User-Agent": request.userAgent,
    "X-Service-Event": eventName,
    "webhook-id": eventId,
    ...(secret !== null && signatureHeaders(secret, eventId, timestampSeconds, payload)),
  };
  agent.dispatch(
    // The caller's own timer bounds the whole attempt.
    { origin, path: pathname + search, method: "POST", headers, body: payload, headersTimeout: 0, bodyTimeout: 0 },
    {
      onConnect(abortRequest) {
        // Given up while it waited for its connection: nothing is sent any more.
        if (hasEnded) abortRequest();
        else abort = abortRequest;
      },
      onHeaders(statusCode, raw) {
        // 1xx are no answers yet.
        if (statusCode >= 200) answer.takeHeaders(statusCode, raw);
        return true;
      },
      onData(chunk) {
        if (answer.takeBody(chunk)) return true;
        end(null);
        abort?.();
        return false;
      },
      onComplete() {
        end(null);
      },
      onUpgrade(_statusCode, _headers, socket) {
        socket.destroy();
        end("the receiver answered with another protocol");
      },
      onError(error) {
        endWith(failureText(error));
      },
    },
  );
  return {
    timeOut(timeoutMs) {
      endWith(`no answer within ${timeoutMs / 1000} s`);
      abort?.();
    },
  };
}

function statusFault(statusCode: number | null): string | null {
  if (statusCode === null) return "no answer";
  if (statusCode >= 200 && statusCode < 300) return null;
  if (statusCode >= 300 && statusCode < 400) return `the receiver answered ${statusCode}: redirects are not followed`;
  return `the receiver answered ${statusCode}`;
}

/** Longest text of an error that is kept. */
const ERROR_CHARACTERS = 500;

const FAILURES: Record<string, string> = {
  ECONNREFUSED: "the connection was refused",
  ECONNRESET: "the connection was reset",
  EPIPE: "the connection was reset",
  ENOTFOUND: "the host name does not resolve",
  EAI_AGAIN: "the host name does not resolve now",
  EHOSTUNREACH: "the host cannot be reached",
  ENETUNREACH: "the network cannot be reached",
  ETIMEDOUT: "the connection timed out",
  UND_ERR_CONNECT_TIMEOUT: "the connection timed out",
  UND_ERR_SOCKET: "the connection was closed before an answer came",
  UND_ERR_HEADERS_OVERFLOW: "the answer's headers are too large",
};

/** What went wrong, for people: never more than the address and the kind of failure. */
function failureText(error: Error): string {
  if (error instanceof AddressRefusedError) return error.message;
  const { code } = error as { code?: unknown };
  if (typeof code === "string") {
    if (code.startsWith("HPE_")) return `the answer is not HTTP (${code})`;
    const known = FAILURES[code];
    if (known !== undefined) return `${known} (${code})`;
  }
  // Several addresses of one name were tried.
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return failureText(error.errors[0]);
  return error.message.slice(0, ERROR_CHARACTERS).toWellFormed();
}
