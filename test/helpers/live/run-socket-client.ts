import { type ClientOptions, WebSocket } from "ws";
import { withoutCellNames } from "../plant/hub-in-front.js";

/** A WebSocket of one run, by the package ws. */
export class RunSocketClient {
  readonly ws: WebSocket;
  readonly messages: { type: string; run: { id: string; status: string; updated_at: string } }[] = [];
  /** Pings and pongs that came. */
  pings = 0;
  pongs: string[] = [];
  /** Status of a refused upgrade. */
  refusedStatus: number | undefined;
  upgradeHeaders: Record<string, string | string[] | undefined> = {};
  closed: { code: number; reason: string } | undefined;
  #wake: () => void = () => {};

  constructor(port: number, runId: string, protocols: string[] = [], options: ClientOptions = {}) {
    this.ws = new WebSocket(`ws://127.0.0.1:${port}/runs/${runId}/live`, protocols, options);
    const after = (take: () => void) => {
      take();
      this.#wake();
    };
    this.ws.on("upgrade", ({ headers }) => (this.upgradeHeaders = headers));
    this.ws.on("message", (data) => after(() => this.messages.push(JSON.parse(withoutCellNames(String(data))))));
    this.ws.on("ping", () => after(() => this.pings++));
    this.ws.on("pong", (data) => after(() => this.pongs.push(String(data))));
    this.ws.on("error", () => {});
    this.ws.on("unexpected-response", (_, { statusCode }) =>
      after(() => {
        this.refusedStatus = statusCode;
        this.closed = { code: 1006, reason: "" };
      }),
    );
    this.ws.on("close", (code, reason) => after(() => (this.closed ??= { code, reason: String(reason) })));
  }

  /** Resolves when the condition holds; rejects when the connection closes before. */
  async until(isMet: (client: RunSocketClient) => boolean): Promise<void> {
    while (!isMet(this)) {
      if (this.closed !== undefined) throw new Error(`closed with ${this.closed.code} ${this.refusedStatus ?? ""}`);
      await this.#more();
    }
  }

  async end(): Promise<{ code: number; reason: string }> {
    while (this.closed === undefined) await this.#more();
    return this.closed;
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
