import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { IS_HUB_IN_FRONT, withoutCellNames } from "../plant/hub-in-front.js";

export interface RawResponse {
  status: number;
  /** Names in lower case; the last line of a name wins. */
  headers: Record<string, string>;
  body: Buffer;
  json(): unknown;
}

/** One TCP connection that speaks HTTP byte by byte, so that tests can send what no client library would. */
export class RawConnection {
  readonly socket: Socket;
  /** Resolves when the connection is gone, however. */
  readonly closed: Promise<void>;
  #chunks: Buffer[] = [];
  #receivedBytes = 0;
  #isClosed = false;
  #wake: (() => void) | undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (bytes) => {
      this.#chunks.push(bytes);
      this.#receivedBytes += bytes.length;
      this.#wake?.();
    });
    socket.on("error", () => {});
    this.closed = new Promise((resolve) => {
      socket.on("close", () => {
        this.#isClosed = true;
        this.#wake?.();
        resolve();
      });
    });
  }

  /** @param ca certificate to trust: over TLS */
  static async open(port: number, ca?: string): Promise<RawConnection> {
    const address = { port, host: "127.0.0.1" };
    const socket = ca === undefined ? connect(address) : connectTls({ ...address, ca });
    const connection = new RawConnection(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once(ca === undefined ? "connect" : "secureConnect", resolve);
      socket.once("error", reject);
    });
    return connection;
  }

  /** As `open`; the end of the test closes it. */
  static async openFor(t: { teardown(undo: () => unknown): unknown }, port: number): Promise<RawConnection> {
    const connection = await RawConnection.open(port);
    t.teardown(async () => connection.close());
    return connection;
  }

  /** Bytes received and not read yet. */
  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  /** What is received and not read yet, in Latin-1. */
  get rest(): string {
    return this.#received().toString("latin1");
  }

  /** All that is received, in one piece. */
  #received(): Buffer {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0] ?? Buffer.alloc(0);
  }

  #take(bytes: number): Buffer {
    const received = this.#received();
    this.#chunks = [received.subarray(bytes)];
    this.#receivedBytes -= bytes;
    return received.subarray(0, bytes);
  }

  send(text: string): void {
    this.socket.write(Buffer.from(text, "latin1"));
  }

  /** Reads one response; undefined when the connection closed before a whole one came. */
  async response(method = "GET"): Promise<RawResponse | undefined> {
    const head = await this.#until(() => {
      const end = this.#received().indexOf("\r\n\r\n");
      return end === -1 ? undefined : end;
    });
    if (head === undefined) return undefined;
    const lines = this.#take(head + 4)
      .subarray(0, head)
      .toString("latin1")
      .split("\r\n");
    const status = Number(lines[0]?.split(" ")[1]);
    const headers: Record<string, string> = {};
    for (const line of lines.slice(1)) {
      const colon = line.indexOf(":");
      headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
    }
    // A stream of events has no end.
    const isWhole = headers["transfer-encoding"] === "chunked" && headers["content-type"] !== "text/event-stream";
    if (isWhole && method !== "HEAD") {
      const chunked = await this.#chunkedBody();
      return chunked && answerOf(status, headers, chunked);
    }
    const length = method === "HEAD" ? 0 : Number(headers["content-length"] ?? 0);
    const complete = await this.#until(() => (this.#receivedBytes >= length ? true : undefined));
    if (complete === undefined) return undefined;
    return answerOf(status, headers, this.#take(length));
  }

  /** Undefined when the connection closed before the last chunk. */
  async #chunkedBody(): Promise<Buffer | undefined> {
    const chunks: Buffer[] = [];
    for (;;) {
      const line = await this.#until(() => {
        const end = this.#received().indexOf("\r\n");
        return end === -1 ? undefined : end;
      });
      if (line === undefined) return undefined;
      const length = Number.parseInt(this.#take(line + 2).toString("latin1"), 16);
      const isThere = await this.#until(() => (this.#receivedBytes >= length + 2 ? true : undefined));
      if (isThere === undefined) return undefined;
      chunks.push(Buffer.from(this.#take(length + 2).subarray(0, length)));
      if (length === 0) return Buffer.concat(chunks);
    }
  }

  close(): void {
    this.socket.destroy();
  }

  async #until<T>(ready: () => T | undefined): Promise<T | undefined> {
    for (;;) {
      const value = ready();
      if (value !== undefined) return value;
      if (this.#isClosed) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

function answerOf(status: number, headers: Record<string, string>, received: Buffer): RawResponse {
  const isMasked = IS_HUB_IN_FRONT && headers["content-type"] === "application/json";
  const body = isMasked ? Buffer.from(withoutCellNames(received.toString())) : received;
  if (headers["content-length"] === String(received.length)) headers["content-length"] = String(body.length);
  return { status, headers, body, json: () => JSON.parse(body.toString()) };
}

/** One request on a connection of its own. */
export async function rawRequest(port: number, text: string, method = "GET"): Promise<RawResponse | undefined> {
  const connection = await RawConnection.open(port);
  try {
    connection.send(text);
    return await connection.response(method);
  } finally {
    connection.close();
  }
}
