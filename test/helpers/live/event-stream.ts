import { get, type IncomingMessage } from "node:http";
import type { components } from "../../../http/client/interface-types.js";
import { withoutCellNames } from "../plant/hub-in-front.js";

type Row = components["schemas"]["ProgramRunSummaryResponse"];

export interface StreamEvent {
  id: string | undefined;
  event: string | undefined;
  data: string;
}

export interface StreamOptions {
  port: number;
  /** With its question mark. */
  query?: string;
  headers?: Record<string, string>;
}

/** A client of Server-Sent Events that a test can stop reading. */
export class EventStream {
  readonly response: IncomingMessage;
  readonly events: StreamEvent[] = [];
  readonly comments: string[] = [];
  /** As the stream said, in milliseconds. */
  retryMs: number | undefined;
  /** Bytes that came. */
  bytes = 0;
  hasEnded = false;
  #text = "";
  #wake: () => void = () => {};

  /** Resolves with the stream, whatever its status. */
  static open({ port, query = "", headers = {} }: StreamOptions): Promise<EventStream> {
    return new Promise((resolve, reject) => {
      const options = { host: "127.0.0.1", port, path: `/runs/changes${query}`, headers, agent: false };
      get(options, (response) => resolve(new EventStream(response))).on("error", reject);
    });
  }

  private constructor(response: IncomingMessage) {
    this.response = response;
    response.setEncoding("utf8");
    response.on("data", (text: string) => this.#take(text));
    response.on("error", () => {});
    response.on("close", () => {
      this.hasEnded = true;
      this.#wake();
    });
  }

  get lastId(): string | undefined {
    return this.events.findLast(({ id }) => id !== undefined)?.id;
  }

  /** The rows of all run events. */
  get rows(): Row[] {
    return this.events.filter(({ event }) => event === "run").map(({ data }) => JSON.parse(data) as Row);
  }

  /** Resolves when the condition holds, which is looked at whenever something comes; rejects when the stream ends before. */
  async until(isMet: (stream: EventStream) => boolean): Promise<void> {
    while (!isMet(this)) {
      if (this.hasEnded) throw new Error(`the stream ended: ${JSON.stringify(this.events.at(-1))}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async ended(): Promise<void> {
    while (!this.hasEnded) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  close(): void {
    this.response.destroy();
  }

  #take(text: string): void {
    this.bytes += Buffer.byteLength(text);
    this.#text += text;
    for (let end = this.#text.indexOf("\n\n"); end >= 0; end = this.#text.indexOf("\n\n")) {
      this.#takeBlock(this.#text.slice(0, end));
      this.#text = this.#text.slice(end + 2);
    }
    this.#wake();
  }

  #takeBlock(block: string): void {
    const fields: Record<string, string> = {};
    for (const line of block.split("\n")) {
      const colon = line.indexOf(":");
      if (colon === 0) this.comments.push(line);
      else fields[line.slice(0, colon)] = line.slice(colon + 1).replace(/^ /, "");
    }
    if (fields.retry !== undefined) this.retryMs = Number(fields.retry);
    if (fields.data !== undefined)
      this.events.push({ id: fields.id, event: fields.event, data: withoutCellNames(fields.data) });
  }
}
