import { connect, type Socket } from "node:net";

const HEAD_END = "\r\n\r\n";
const HEAD_BYTES = 8192;

/** What is known of an answer. Its bytes are counted and thrown away, so that the client takes little CPU time from the server. */
export interface CountedAnswer {
  bodyBytes: number;
  /** When the first bytes of the body came, in ms of performance.now(). */
  firstByteMs: number;
}

/**
 * A connection that stays open, with one GET at a time. It takes any status but 200 as an error, and needs a Content-Length. All
 * answers that benchmarks ask for have one.
 */
export class HttpConnection {
  readonly #socket: Socket;
  readonly #host: string;
  #waiting: { path: string; resolve: (answer: CountedAnswer) => void; reject: (error: Error) => void } | undefined;
  #head = "";
  #bodyBytes = 0;
  #leftBytes = 0;
  #firstByteMs = 0;
  #fault: Error | undefined;

  private constructor(socket: Socket, host: string) {
    this.#socket = socket;
    this.#host = host;
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => this.#fail(new Error("the server closed the connection")));
  }

  /** @param url `http://host:port` */
  static async open(url: string): Promise<HttpConnection> {
    const { hostname, port, host } = new URL(url);
    const socket = connect(Number(port), hostname);
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    return new HttpConnection(socket, host);
  }

  /** @param path with its query */
  get(path: string): Promise<CountedAnswer> {
    return new Promise((resolve, reject) => {
      if (this.#fault !== undefined) return reject(this.#fault);
      this.#waiting = { path, resolve, reject };
      this.#head = "";
      this.#firstByteMs = 0;
      this.#socket.write(`GET ${path} HTTP/1.1\r\nHost: ${this.#host}\r\n\r\n`, "latin1");
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    if (this.#waiting === undefined) {
      this.#fail(new Error("bytes came that nobody asked for"));
      return;
    }
    let bodyBytes = chunk.length;
    if (this.#firstByteMs === 0) {
      if (!this.#head.endsWith(HEAD_END)) {
        const before = this.#head.length;
        this.#head += chunk.toString("latin1", 0, HEAD_BYTES);
        const end = this.#head.indexOf(HEAD_END) + HEAD_END.length;
        if (end < HEAD_END.length) {
          if (this.#head.length >= HEAD_BYTES) this.#fail(new Error(`no end of the header within ${HEAD_BYTES} bytes`));
          return;
        }
        this.#head = this.#head.slice(0, end);
        bodyBytes = chunk.length - (end - before);
        if (!this.#readHead()) return;
      }
      if (bodyBytes > 0) this.#firstByteMs = performance.now();
    }
    this.#leftBytes -= bodyBytes;
    if (this.#leftBytes < 0) this.#fail(new Error("the answer is longer than its Content-Length"));
    if (this.#leftBytes !== 0) return;
    const { resolve } = this.#waiting;
    this.#waiting = undefined;
    resolve({ bodyBytes: this.#bodyBytes, firstByteMs: this.#firstByteMs });
  }

  #readHead(): boolean {
    const status = this.#head.slice(9, 12);
    const length = /\r\ncontent-length: *(\d+)\r\n/i.exec(this.#head)?.[1];
    if (status !== "200") this.#fail(new Error(`GET ${this.#waiting?.path} answered ${status}`));
    else if (length === undefined) this.#fail(new Error(`GET ${this.#waiting?.path} answered no Content-Length`));
    else {
      this.#bodyBytes = Number(length);
      this.#leftBytes = this.#bodyBytes;
      return true;
    }
    return false;
  }

  /** After a fault the connection takes no more requests. */
  #fail(error: Error): void {
    this.#fault ??= error;
    this.#waiting?.reject(error);
    this.#waiting = undefined;
    this.#socket.destroy();
  }
}
