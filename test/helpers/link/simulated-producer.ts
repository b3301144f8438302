import { createHash } from "node:crypto";
import { readUuid } from "../../../core/identifiers.js";
import type { CellMessage } from "../../../core/link/cell-message-schema.js";
import { BufferPool } from "../../../workers/buffer-pool.js";
import { encodeFrame, FRAME_KIND, type Frame, FrameParser } from "../../../workers/cell-link/frame-codec.js";
import type { LinkServer } from "../../../workers/cell-link/link-server.js";
import { decodeBody } from "../../../workers/cell-link/strict-message-pack.js";
import { MemorySocket } from "./memory-socket.js";

export interface SentMessage {
  message: CellMessage;
  payload: Uint8Array;
}

/** What the service said to a message: it was taken (null), or why not. */
export type MessageAnswer = string | null;

/**
 * A producer as workers/cell-link/README.md wants it: it numbers its messages, keeps each until it is answered, and sends those again after every
 * reconnect. It remembers all that was ever answered.
 */
export class SimulatedProducer {
  readonly name: string;
  /** Made of the name, so that a seed gives the same bytes. */
  readonly instance: string;
  /** All of them; sequence number n at n - 1. */
  readonly messages: SentMessage[] = [];
  readonly answers: MessageAnswer[] = [];
  /** What the service must not do. */
  readonly faults: string[] = [];
  /** Called as the service writes an acknowledgement or the refusal of a message. */
  onAnswerWritten: () => void = () => {};
  /** Refusals of messages that came while earlier messages had no answer yet. */
  readonly #refusals = new Map<number, string>();
  #socket: MemorySocket | null = null;
  #isWelcome = false;

  constructor(name: string) {
    this.name = name;
    this.instance = readUuid(createHash("sha256").update(name).digest());
  }

  get isConnected(): boolean {
    return this.#socket !== null;
  }

  /** Messages that have no answer yet. */
  get waiting(): number {
    return this.messages.length - this.answers.length;
  }

  connect(link: LinkServer): void {
    const [own, service] = MemorySocket.pair();
    this.#socket = own;
    this.#isWelcome = false;
    const parser = new FrameParser({
      buffers: new BufferPool(0),
      onFrame: (frame) => {
        if (this.#socket === own) this.#receive(frame);
      },
    });
    own.on("data", (bytes: Uint8Array) => parser.push(bytes));
    own.on("end", () => own.end());
    own.on("close", () => {
      if (this.#socket === own) this.#socket = null;
    });
    service.onWrite = ([, , , , , kind]) => {
      if (this.#socket === own && kind === FRAME_KIND.ack) this.onAnswerWritten();
    };
    link.accept(service.asSocket(), null);
    this.#send("hello", 0, { protocol: 1, producer: this.name, instance: this.instance });
  }

  /** Nothing of the other side is heard any more. */
  disconnect(): void {
    this.#socket?.destroy();
    this.#socket = null;
  }

  /** Sends everything that has no answer once more, which a producer need not do and may. */
  repeat(): void {
    if (!this.#isWelcome || this.#socket === null) return;
    for (let number = this.answers.length + 1; number <= this.messages.length; number++) this.#sendMessage(number);
  }

  send(sent: SentMessage): void {
    this.messages.push(sent);
    if (this.#isWelcome) this.#sendMessage(this.messages.length);
  }

  #sendMessage(number: number): void {
    const { message, payload } = this.messages[number - 1] as SentMessage;
    this.#send("message", number, message, payload);
  }

  #send(kind: Frame["kind"], sequence: number, body: object, payload?: Uint8Array): void {
    for (const part of encodeFrame({ kind, sequence, body, ...(payload && { payload }) })) this.#socket?.write(part);
  }

  #receive(frame: Frame): void {
    const { kind, sequence } = frame;
    const decoded = decodeBody(frame.body);
    const body = decoded.ok ? decoded.body : {};
    if (kind === "welcome") {
      const committed = body.committed as number;
      if (body.yours !== committed) this.faults.push(`welcome says ${body.yours} of ${committed} are its own`);
      if (committed < this.answers.length || committed > this.messages.length) {
        this.faults.push(
          `welcome says ${committed} committed: ${this.answers.length} are answered, ${this.messages.length} were sent`,
        );
      }
      this.#isWelcome = true;
      for (let number = this.answers.length + 1; number <= this.messages.length; number++) this.#sendMessage(number);
    } else if (kind === "ack") {
      this.#answerUpTo(sequence);
    } else if (kind === "refuse" && sequence > 0) {
      this.#refused(sequence, String(body.code), String(body.message));
    }
  }

  /** An acknowledgement covers all messages up to its sequence number except refused ones. */
  #answerUpTo(sequence: number): void {
    while (this.answers.length < sequence || this.#refusals.has(this.answers.length + 1)) {
      const number = this.answers.length + 1;
      this.answers.push(this.#refusals.get(number) ?? null);
      this.#refusals.delete(number);
    }
  }

  #refused(sequence: number, code: string, message: string): void {
    const before = this.answers[sequence - 1] ?? this.#refusals.get(sequence);
    if (code.startsWith("sequence_") || (sequence <= this.answers.length && before !== code)) {
      this.faults.push(`${code} for ${sequence}, which was answered with ${before}: ${message}`);
    } else if (sequence > this.answers.length) {
      this.#refusals.set(sequence, code);
      this.#answerUpTo(0);
    }
  }
}
