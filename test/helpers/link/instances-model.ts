import type { Refusal } from "../../../core/link/refusal.js";
import type { Random } from "../../../core/random.js";
import type { Origin } from "../../../storage/records/record-index.js";
import { BufferPool } from "../../../workers/buffer-pool.js";
import { encodeFrame, type Frame, FrameParser } from "../../../workers/cell-link/frame-codec.js";
import { LinkServer } from "../../../workers/cell-link/link-server.js";
import type { IncomingMessage, MessageIntake, ProducerProgress } from "../../../workers/cell-link/message-intake.js";
import { decodeBody } from "../../../workers/cell-link/strict-message-pack.js";
import { UnacknowledgedQueue } from "../../../workers/cell-link/unacknowledged-queue.js";
import { ProducerTable } from "../../../workers/recorder/producers/producer-table.js";
import { ManualTimers } from "../recorder/manual-timers.js";
import { MemorySocket } from "./memory-socket.js";

/** A record of the durable log: which message it has, and under which sequence number. */
export interface StoredMessage {
  key: number;
  origin: Origin;
  refusal: Refusal | null;
}

/** Every fifth message is wrong. */
export function isRefused(key: number): boolean {
  return key % 5 === 0;
}

function refusalOf(key: number): Refusal | null {
  return isRefused(key) ? { code: "not_found", message: `message ${key}`, params: {} } : null;
}

/** The service's side: the real link and the real table of producers, over a log that is a list. */
export class ModelService implements MessageIntake {
  readonly serviceVersion = "model";
  readonly lastRunId = null;
  readonly durable: StoredMessage[];
  readonly link: LinkServer;
  alternations = 0;
  unavailable: string | null = null;
  readonly #table: ProducerTable;
  #inFlight: { stored: StoredMessage; message: IncomingMessage }[] = [];

  /** Opens what an earlier life has left; the log is read whole, or from a snapshot, or with the opening state of a segment within. */
  constructor(durable: StoredMessage[], random: Random) {
    this.durable = durable;
    const cut = random.integer(0, durable.length);
    const before = tableOf(durable.slice(0, cut));
    this.#table = random.chance(0.5) ? new ProducerTable() : tableOf(durable.slice(0, cut));
    this.#table.restore(before.entries());
    for (const { origin, refusal } of durable.slice(cut)) this.#table.take(origin, 1, refusal, true);
    this.link = new LinkServer({
      intake: this,
      timers: new ManualTimers(),
      report: (error) => {
        throw error;
      },
    });
  }

  get waiting(): number {
    return this.#inFlight.length;
  }

  producer(name: string): ProducerProgress | undefined {
    return this.#table.getOrAdd(name);
  }

  take(message: IncomingMessage): void {
    const body = decodeBody(message.body);
    const key = body.ok ? Number(body.body.key) : Number.NaN;
    const { producer, sequence, instance } = message;
    const origin = { producer: producer.name, sequence, ...(instance !== null && { instance }) };
    const refusal = refusalOf(key);
    this.#table.take(origin, 1, refusal, false);
    this.#inFlight.push({ stored: { key, origin, refusal }, message });
  }

  /** So many records become durable, and are answered. */
  commit(count: number): void {
    for (const { stored, message } of this.#inFlight.splice(0, count)) {
      this.durable.push(stored);
      this.#table.commit(stored.origin.producer, stored.origin.sequence);
      message.onCommitted(stored.refusal);
    }
    this.link.flush();
  }

  /** Ends at once; so many more records have reached the disk, and nobody was told. */
  crash(count: number): void {
    for (const { stored } of this.#inFlight.splice(0, count)) this.durable.push(stored);
    this.#inFlight = [];
    this.unavailable = "crashed";
  }

  connected(): void {}

  alternated(): void {
    this.alternations++;
  }

  disconnected(producer: ProducerProgress): void {
    this.#table.forgetUnused(producer.name);
  }
}

function tableOf(stored: readonly StoredMessage[]): ProducerTable {
  const table = new ProducerTable();
  for (const { origin, refusal } of stored) table.take(origin, 1, refusal, true);
  return table;
}

/** What a producer keeps of its messages. `answered` tells of each once. */
interface KeptQueue {
  readonly waiting: number;
  add(key: number): void;
  welcome(committed: number, yours: number): void;
  next(): Uint8Array[] | undefined;
  acknowledge(sequence: number): void;
  refuse(sequence: number): void;
  disconnected(): void;
}

type Answered = (key: number, answer: "taken" | "refused" | "stored") => void;

/** As the specification has it, word for word: what is at or below `yours` is forgotten, the rest is given new sequence numbers. */
class PlainQueue implements KeptQueue {
  #messages: { key: number; sequence: number }[] = [];
  #next = 0;
  #sent = 0;
  readonly #answered: Answered;

  constructor(answered: Answered) {
    this.#answered = answered;
  }

  get waiting(): number {
    return this.#messages.length;
  }

  add(key: number): void {
    this.#messages.push({ key, sequence: this.#next++ });
  }

  welcome(committed: number, yours: number): void {
    while (this.#messages[0] !== undefined && this.#messages[0].sequence <= yours && this.#sent > 0) {
      this.#forget("stored");
      this.#sent--;
    }
    for (const [at, message] of this.#messages.entries()) message.sequence = committed + 1 + at;
    this.#next = committed + 1 + this.#messages.length;
    this.#sent = 0;
  }

  next(): Uint8Array[] | undefined {
    const message = this.#messages[this.#sent];
    if (message === undefined) return undefined;
    this.#sent++;
    return encodeFrame({ kind: "message", sequence: message.sequence, body: { key: message.key } });
  }

  acknowledge(sequence: number): void {
    while (this.#messages[0] !== undefined && this.#messages[0].sequence <= sequence) {
      this.#forget("taken");
      this.#sent--;
    }
  }

  refuse(sequence: number): void {
    const at = this.#messages.findIndex((message) => message.sequence === sequence);
    const [message] = this.#messages.splice(at, 1);
    this.#sent--;
    if (message !== undefined) this.#answered(message.key, "refused");
  }

  disconnected(): void {}

  protected clear(): void {
    this.#messages = [];
    this.#sent = 0;
  }

  #forget(answer: "taken" | "stored"): void {
    const message = this.#messages.shift();
    if (message !== undefined) this.#answered(message.key, answer);
  }
}

/** A queue that names no instance can send nothing again. */
class ForgetfulQueue extends PlainQueue {
  override disconnected(): void {
    this.clear();
  }
}

/** The queue of the project's own client. */
class ClientQueue implements KeptQueue {
  readonly #queue = new UnacknowledgedQueue();
  readonly #answered: Answered;

  constructor(answered: Answered) {
    this.#answered = answered;
  }

  get waiting(): number {
    return this.#queue.count;
  }

  add(key: number): void {
    this.#queue.add({ key }, undefined).acknowledged.then(
      () => this.#answered(key, "taken"),
      () => this.#answered(key, "refused"),
    );
  }

  welcome(committed: number, yours: number): void {
    const { acknowledgedLost, isForeign } = this.#queue.continueAfter(committed, yours);
    if (isForeign || acknowledgedLost > 0) throw new Error(`welcome ${committed}, ${yours}: lost ${acknowledgedLost}`);
  }

  next(): Uint8Array[] | undefined {
    return this.#queue.takeNextToSend();
  }

  acknowledge(sequence: number): void {
    this.#queue.acknowledge(sequence);
  }

  refuse(sequence: number): void {
    this.#queue.refuse(sequence, new Error("refused"));
  }

  disconnected(): void {}
}

export type ProducerKind = "plain" | "client" | "without instance";

/** One instance: a process with a queue, and its connection while there is one. */
export class ModelProducer {
  readonly kind: ProducerKind;
  readonly name: string;
  readonly faults: string[] = [];
  readonly #instance: string | null;
  readonly #queue: KeptQueue;
  #socket: MemorySocket | null = null;
  #serviceSocket: MemorySocket | null = null;
  #isWelcome = false;

  constructor(kind: ProducerKind, name: string, instance: string, answered: Answered) {
    this.kind = kind;
    this.name = name;
    this.#instance = kind === "without instance" ? null : instance;
    if (kind === "client") this.#queue = new ClientQueue(answered);
    else this.#queue = kind === "plain" ? new PlainQueue(answered) : new ForgetfulQueue(answered);
  }

  get isConnected(): boolean {
    return this.#socket !== null;
  }

  get waiting(): number {
    return this.#queue.waiting;
  }

  send(key: number): void {
    this.#queue.add(key);
    this.#pump();
  }

  connect(link: LinkServer): void {
    const [own, service] = MemorySocket.pair();
    this.#socket = own;
    this.#serviceSocket = service;
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
      if (this.#socket === own) this.disconnect();
    });
    link.accept(service.asSocket(), null);
    const hello = { protocol: 1, producer: this.name, ...(this.#instance !== null && { instance: this.#instance }) };
    for (const part of encodeFrame({ kind: "hello", sequence: 0, body: hello })) own.write(part);
  }

  /** What is on its way is lost, either way. */
  disconnect(): void {
    this.#socket?.destroy();
    this.#serviceSocket?.destroy();
    this.#socket = null;
    this.#isWelcome = false;
    this.#queue.disconnected();
  }

  #pump(): void {
    if (!this.#isWelcome) return;
    for (let frame = this.#queue.next(); frame !== undefined; frame = this.#queue.next()) {
      for (const part of frame) this.#socket?.write(part.slice());
    }
  }

  #receive({ kind, sequence, body }: Frame): void {
    if (kind === "ack") {
      this.#queue.acknowledge(sequence);
      return;
    }
    const decoded = decodeBody(body);
    if (!decoded.ok) return;
    const { committed, yours, code } = decoded.body;
    if (kind === "welcome") {
      this.#queue.welcome(Number(committed), Number(yours));
      this.#isWelcome = true;
      this.#pump();
    } else if (code === "not_found") {
      this.#queue.refuse(sequence);
    } else {
      this.faults.push(`refused: ${JSON.stringify(decoded.body)}`);
    }
  }
}
