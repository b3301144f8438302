import { connect, type Socket } from "node:net";
import type { JsonObject } from "../../../core/json/json.js";
import { BufferPool } from "../../../workers/buffer-pool.js";
import { encodeFrame, type FrameKind, FrameParser, type FrameToSend } from "../../../workers/cell-link/frame-codec.js";
import { decodeBody } from "../../../workers/cell-link/strict-message-pack.js";

export interface ReceivedFrame {
  kind: FrameKind;
  sequence: number;
  body: JsonObject;
}

export interface Answer {
  code: string;
  message: string;
  params: JsonObject;
}

/** A producer that speaks frame by frame: nothing is resent, and every frame of the service is seen. */
export class RawProducer {
  readonly socket: Socket;
  /** Sequence number of the last message that was sent. */
  sequence = 0;
  welcome: JsonObject = {};
  readonly #frames: ReceivedFrame[] = [];
  readonly #readers: ((frame: ReceivedFrame | null) => void)[] = [];
  #isClosed = false;

  constructor(address: { path: string } | { host: string; port: number }) {
    this.socket = connect(address);
    const parser = new FrameParser({
      buffers: new BufferPool(0),
      onFrame: ({ kind, sequence, body }) => {
        let decoded: JsonObject = {};
        if (body.length > 0) {
          const answer = decodeBody(body);
          if (!answer.ok) throw new Error(`the service sent ${kind} with ${answer.fault.message}`);
          decoded = answer.body;
        }
        this.#deliver({ kind, sequence, body: decoded });
      },
    });
    this.socket.on("data", (chunk) => {
      const fault = parser.push(chunk);
      if (fault !== undefined) throw new Error(`the service sent ${fault.message}`);
    });
    this.socket.on("error", () => {});
    this.socket.on("close", () => {
      this.#isClosed = true;
      for (const reader of this.#readers.splice(0)) reader(null);
    });
  }

  /** Connects and says hello; waits for the welcome. Without an `instance` nothing is sent again. */
  static async connect(
    address: { path: string } | { host: string; port: number },
    producer: string,
    { token, instance }: { token?: string; instance?: string } = {},
  ): Promise<RawProducer> {
    const raw = new RawProducer(address);
    raw.hello({ protocol: 1, producer, ...(token !== undefined && { token }), ...(instance && { instance }) });
    const frame = await raw.next();
    if (frame?.kind !== "welcome") throw new Error(`no welcome but ${JSON.stringify(frame)}`);
    raw.welcome = frame.body;
    raw.sequence = frame.body.committed as number;
    return raw;
  }

  hello(body: object): void {
    this.send({ kind: "hello", sequence: 0, body });
  }

  send(frame: FrameToSend): void {
    for (const part of encodeFrame(frame)) this.socket.write(part);
  }

  write(bytes: Uint8Array): void {
    this.socket.write(bytes);
  }

  /** Sends the next message and gives its sequence number. */
  message(body: object, payload?: Uint8Array): number {
    this.sequence++;
    this.send({ kind: "message", sequence: this.sequence, body, ...(payload && { payload }) });
    return this.sequence;
  }

  /** Sends the next message and waits for its answer: null when it is durable, the refusal otherwise. */
  async deliver(body: object, payload?: Uint8Array): Promise<Answer | null> {
    const sequence = this.message(body, payload);
    for (;;) {
      const frame = await this.next();
      if (frame === null) throw new Error(`closed before the answer to ${JSON.stringify(body)}`);
      if (frame.kind === "ack" && frame.sequence >= sequence) return null;
      if (frame.kind === "refuse") {
        if (frame.sequence === sequence) return frame.body as unknown as Answer;
        throw new Error(`refusal of ${frame.sequence}: ${JSON.stringify(frame.body)}`);
      }
    }
  }

  /** The same, for a message that must be accepted. */
  async accept(body: object, payload?: Uint8Array): Promise<void> {
    const refusal = await this.deliver(body, payload);
    if (refusal !== null) throw new Error(`${JSON.stringify(body)} was refused: ${JSON.stringify(refusal)}`);
  }

  /** The service's next frame; null once the connection is closed. */
  next(): Promise<ReceivedFrame | null> {
    const frame = this.#frames.shift();
    if (frame !== undefined) return Promise.resolve(frame);
    if (this.#isClosed) return Promise.resolve(null);
    return new Promise((resolve) => this.#readers.push(resolve));
  }

  /** All frames that are still to come, until the connection is closed. */
  async rest(): Promise<ReceivedFrame[]> {
    const frames: ReceivedFrame[] = [];
    for (let frame = await this.next(); frame !== null; frame = await this.next()) frames.push(frame);
    return frames;
  }

  /** Sends a ping and gives everything that came up to its pong: by then the service has decided what was sent before. */
  async untilPong(): Promise<ReceivedFrame[]> {
    this.send({ kind: "ping", sequence: 77 });
    const frames: ReceivedFrame[] = [];
    for (;;) {
      const frame = await this.next();
      if (frame === null) throw new Error("closed before the pong");
      if (frame.kind === "pong") return frames;
      frames.push(frame);
    }
  }

  async close(): Promise<void> {
    this.socket.destroy();
    await this.rest();
  }

  #deliver(frame: ReceivedFrame): void {
    const reader = this.#readers.shift();
    if (reader === undefined) this.#frames.push(frame);
    else reader(frame);
  }
}

/** What a connection gets whose hello is this. */
export async function refusedHello(address: ConstructorParameters<typeof RawProducer>[0], body: object) {
  const raw = new RawProducer(address);
  raw.hello(body);
  return raw.rest();
}
