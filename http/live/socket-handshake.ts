import { ServiceError } from "../../core/service-errors.js";

/** The subprotocol of the service. */
export const SUBPROTOCOL = "inspection.v1";
/** Begins the subprotocol that carries an API key: a browser can set no other header of a WebSocket's request. */
const KEY_PREFIX = "bearer.";

/** The names in Sec-WebSocket-Protocol. */
function offeredProtocols(header: string | undefined): string[] {
  return (header ?? "").split(",").map((name) => name.trim());
}

/** @param header Sec-WebSocket-Protocol */
export function selectedProtocol(header: string | undefined): string | undefined {
  return offeredProtocols(header).includes(SUBPROTOCOL) ? SUBPROTOCOL : undefined;
}

/** The API key among the subprotocols, as an Authorization header would carry it. @param header Sec-WebSocket-Protocol */
export function protocolAuthorization(header: string | undefined): string | undefined {
  const carrier = offeredProtocols(header).find((name) => name.startsWith(KEY_PREFIX));
  return carrier && `Bearer ${carrier.slice(KEY_PREFIX.length)}`;
}

// Tokens (RFC 9110, section 5.6.2) between commas.
const PROTOCOLS = /^[!#$%&'*+\-.^_`|~\w]+(?:[ \t]*,[ \t]*[!#$%&'*+\-.^_`|~\w]+)*$/;

function hasToken(header: string | undefined, token: string): boolean {
  return (header ?? "").split(",").some((one) => one.trim().toLowerCase() === token);
}

/**
 * Checks a WebSocket's opening handshake (RFC 6455, section 4.2.1), as strictly as the package ws does.
 * @param header a request's header by its name in lower case
 * @throws ServiceError upgrade_required, bad_request
 */
export function checkHandshake(header: (name: string) => string | undefined): void {
  if (!hasToken(header("connection"), "upgrade") || header("upgrade")?.toLowerCase() !== "websocket") {
    throw wrong("upgrade_required", "upgrade", header("upgrade"), "websocket, with Connection: Upgrade");
  }
  const version = header("sec-websocket-version");
  if (version?.trim() !== "13") throw wrong("upgrade_required", "sec-websocket-version", version, "13");
  const key = header("sec-websocket-key");
  if (!/^[A-Za-z0-9+/]{22}==$/.test(key ?? "")) {
    throw wrong("bad_request", "sec-websocket-key", key, "16 random bytes in base64");
  }
  const protocols = header("sec-websocket-protocol");
  const offered = offeredProtocols(protocols);
  if (protocols !== undefined && (!PROTOCOLS.test(protocols) || new Set(offered).size < offered.length)) {
    // An answer does not repeat a key.
    const shown = protocols.replaceAll(/bearer\.[^,]*/g, `${KEY_PREFIX}…`);
    throw wrong("bad_request", "sec-websocket-protocol", shown, "a list of different tokens");
  }
}

/** The error for a request that is no handshake whatever its headers are. */
export function notUpgradable(method: string): ServiceError {
  const message = "this path opens a WebSocket: ask for it by GET, with the headers of a handshake";
  return new ServiceError("upgrade_required", message, { method, allow: ["GET"] });
}

function wrong(
  code: "upgrade_required" | "bad_request",
  field: string,
  value: string | undefined,
  allowed: string,
): ServiceError {
  const message = `this path opens a WebSocket: the header ${field} must be ${allowed}`;
  return new ServiceError(code, message, { field, in: "header", value: value?.slice(0, 200) ?? null, allowed });
}
