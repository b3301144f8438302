import type { IncomingMessage, ServerResponse } from "node:http";
import type { HeaderLines, Reply } from "../replies/reply.js";
import { type IncomingRequest, requestTraceId } from "../requests/incoming-request.js";
import { RequestHeaders } from "../requests/request-headers.js";
import type { Route } from "../requests/route.js";
import { KEEP_ALIVE_LINES } from "./server-options.js";

/** One request and its answer. */
export class Exchange implements IncomingRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers = new RequestHeaders();
  readonly traceId: string;
  readonly response: ServerResponse;
  readonly #request: IncomingMessage;
  #isRead = false;
  /** The rest of the body has not arrived yet. */
  isReading = false;
  startedMs = 0;
  route: Route | undefined;
  handled: { end(): void } | undefined;
  furtherHeaders: HeaderLines | undefined;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#request = request;
    this.response = response;
    this.method = request.method ?? "";
    const target = request.url ?? "";
    const mark = target.indexOf("?");
    // A copy if there is a query: a slice would keep the whole target in memory wherever the path, or an id from it, is kept.
    this.path = mark === -1 ? utf8(target) : utf8Copy(target.slice(0, mark));
    this.query = mark === -1 ? "" : utf8(target.slice(mark + 1));
    const { rawHeaders } = request;
    for (let i = 0; i < rawHeaders.length; i += 2) {
      this.headers.add((rawHeaders[i] as string).toLowerCase(), utf8(rawHeaders[i + 1] as string));
    }
    this.traceId = requestTraceId(this.headers);
  }

  isAborted(): boolean {
    return this.response.destroyed || this.response.closed;
  }

  remoteAddress(): string {
    return this.#request.socket.remoteAddress ?? "";
  }

  whenAborted(listener: () => void): void {
    this.response.once("close", listener);
  }

  readBody(lengthBytes: number): Promise<Uint8Array | undefined> {
    const request = this.#request;
    this.#isRead = true;
    this.isReading = true;
    if (/^100-continue$/i.test(this.headers.get("expect") ?? "")) this.response.writeContinue();
    return new Promise((resolve) => {
      const body = Buffer.allocUnsafeSlow(lengthBytes);
      let position = 0;
      request.on("data", (chunk: Buffer) => {
        body.set(chunk, position);
        position += chunk.byteLength;
      });
      const end = (whole: Uint8Array | undefined) => {
        this.isReading = false;
        resolve(whole);
      };
      request.on("end", () => end(body));
      request.on("close", () => end(undefined));
      request.on("error", () => end(undefined));
    });
  }

  /** Discards a body that nobody has read, so that the next request can arrive. */
  skipBody(): void {
    if (!this.#isRead) this.#request.resume();
  }
}

/** Decodes UTF-8 from the Latin-1 strings that node:http gives. */
function utf8(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII
  return /^[\x00-\x7f]*$/.test(text) ? text : utf8Copy(text);
}

/** The same, always as a new string. */
function utf8Copy(text: string): string {
  return Buffer.from(text, "latin1").toString("utf8");
}

export function writeHead(
  { response, traceId, furtherHeaders = [] }: Exchange,
  reply: Reply,
  totalBytes: number | undefined,
): void {
  const lines = ["X-Trace-ID", traceId];
  if (reply.contentType !== undefined) lines.push("Content-Type", reply.contentType);
  if (reply.etag) lines.push("ETag", reply.etag);
  if (reply.variesByEncoding) lines.push("Vary", "Accept-Encoding");
  for (const [name, value] of reply.headers ?? []) lines.push(name, value);
  for (const [name, value] of furtherHeaders) lines.push(name, value);
  if (totalBytes !== undefined) lines.push("Content-Length", String(totalBytes));
  if (reply.closeConnection) lines.push("Connection", "close");
  // node:http's own header would state the full limit. A shorter one ensures that a request on its way still finds the connection open.
  else if (response.shouldKeepAlive) for (const [name, value] of KEEP_ALIVE_LINES) lines.push(name, value);
  response.writeHead(reply.status, lines);
}
