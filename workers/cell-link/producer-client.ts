/**
 * The producer's side of the cell link (workers/cell-link/README.md). The demo cell, tests and benches use it, and it
 * is the reference for producers in TypeScript. It keeps every message until the service has answered it, and sends it
 * again after a reconnect. So each message takes effect exactly once, whichever side failed.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { connect, type Socket } from "node:net";
import { generateUuidV7 } from "../../core/identifiers.js";
import type { JsonObject } from "../../core/json/json.js";
import type { Refusal } from "../../core/link/refusal.js";
import { BufferPool } from "../buffer-pool.js";
import { encodeFrame, type Frame, FrameParser, type FrameToSend, PROTOCOL_VERSION } from "./frame-codec.js";
import { decodeBody } from "./strict-message-pack.js";
import { type QueuedMessage, UnacknowledgedQueue } from "./unacknowledged-queue.js";

export type LinkAddress = { path: string } | { host: string; port: number };

export interface ProducerClientOptions {
  address: LinkAddress;
  /** The producer's stable name: 1 to 64 of `a-z 0-9 . _ -`. */
  producer: string;
  /** Needed over TCP. */
  token?: string;
  /** `send` waits while this many bytes are not acknowledged. A single message may be larger. Default 64 MiB. */
  unacknowledgedLimitBytes?: number;
  /** `send` waits while this many messages are not acknowledged. Default 10,000. */
  unacknowledgedLimitCount?: number;
  /** Pause before the first attempt to reconnect; default 50. It doubles with each attempt, and each pause is shortened at random to half. */
  reconnectFirstMs?: number;
  /** Longest pause before an attempt to reconnect; default 2,000. */
  reconnectLongestMs?: number;
  /** A ping goes out after this time without another frame; default 20,000. The service closes connections that are silent for 60 s. */
  keepAliveMs?: number;
  onWelcome?(welcome: Welcome): void;
  /** A connection ended or could not be made. Another attempt follows. */
  onDisconnected?(reason: string): void;
  /** A message was refused. Its promise rejects with the same refusal. */
  onRefused?(refusal: Refusal<string>): void;
}

export interface Welcome {
  serviceVersion: string;
  /** Last sequence number of this producer that the service has stored. */
  committed: number;
  /**
   * Last stored sequence number that came from this client; 0 if none. It is below `committed` if others sent under its
   * name.
   */
  yours: number;
  lastRunId: string | null;
  /**
   * Acknowledged messages that the service no longer has. It is above 0 only if the service runs without full
   * durability and its machine failed. If others send under the name too, it is an upper bound.
   */
  acknowledgedLost: number;
}

/** The service refused a message: nothing of it was applied, and its sequence number is used up. */
export class MessageRefusedError extends Error {
  readonly code: string;
  readonly params: JsonObject;

  constructor(refusal: Refusal<string>) {
    super(`${refusal.code}: ${refusal.message}`);
    this.name = "MessageRefusedError";
    this.code = refusal.code;
    this.params = refusal.params;
  }
}

/** The client has ended. Messages that were not acknowledged may or may not be stored. */
export class ProducerEndedError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.name = "ProducerEndedError";
    this.code = code;
  }
}

/**
 * Codes that refuse a connection for now: a reconnect can succeed. After the two sequence codes the messages get other
 * sequence numbers.
 */
const PASSING_REFUSALS: ReadonlySet<string> = new Set(["unavailable", "sequence_gap", "sequence_taken"]);
/** Codes that refuse the connection, although the refusal carries a message's sequence number. */
const CONNECTION_REFUSALS: ReadonlySet<string> = new Set(["sequence_gap", "sequence_taken", "bad_frame"]);

interface Waiting {
  resolve(): void;
  reject(error: Error): void;
}

export class ProducerClient {
  readonly #options: ProducerClientOptions;
  readonly #queue = new UnacknowledgedQueue();
  /**
   * Names the queue to the service, which can then tell our messages from others under the same name. It lives as long
   * as the queue.
   */
  readonly #instance = randomUUID();
  readonly #byteLimit: number;
  readonly #countLimit: number;
  readonly #keepAliveMs: number;

  #socket: Socket | undefined;
  /** The service has welcomed the present connection. */
  #welcomed = false;
  /** Connections in a row that brought no answer. */
  #failedAttempts = 0;
  /** The last welcome showed that another program sends under this name. */
  #isNameShared = false;
  #reconnectTimer: NodeJS.Timeout | undefined;
  #keepAliveTimer: NodeJS.Timeout | undefined;
  #wroteSinceKeepAlive = false;
  #pumpScheduled = false;

  /** The highest run id that the service named or `nextRunId` gave. */
  #lastRunId: string | null = null;
  #waitingForRoom: { enter(): void; reject(error: Error): void }[] = [];
  #waitingForWelcome: Waiting[] = [];
  #waitingForQuiet: Waiting[] = [];
  readonly #pings = new Map<number, Waiting>();
  #lastPing = 0;

  #closing = false;
  #ended: ProducerEndedError | undefined;

  /** Connects at once. Messages may be sent before the service answers. */
  constructor(options: ProducerClientOptions) {
    this.#options = options;
    this.#byteLimit = options.unacknowledgedLimitBytes ?? 64 * 1024 * 1024;
    this.#countLimit = options.unacknowledgedLimitCount ?? 10_000;
    this.#keepAliveMs = options.keepAliveMs ?? 20_000;
    this.#connect();
  }

  /** Messages that were sent and are not answered yet. */
  get unacknowledgedCount(): number {
    return this.#queue.count;
  }

  /** The service has welcomed the present connection. */
  get isConnected(): boolean {
    return this.#welcomed;
  }

  /** Resolves when the service has welcomed the present connection; rejects when the client has ended. */
  welcomed(): Promise<void> {
    return this.#welcomed ? Promise.resolve() : this.#wait(this.#waitingForWelcome);
  }

  /** A run id above every one that the service has named. Call it only after `welcomed`. */
  nextRunId(nowMs = Date.now()): string {
    this.#lastRunId = generateUuidV7(nowMs, randomBytes(10), this.#lastRunId);
    return this.#lastRunId;
  }

  /**
   * Sends a message. Messages go out in the order of the calls. Resolves when there is room among the unacknowledged
   * messages; this is the back-pressure. The result has a promise of the service's answer. The payload must not change
   * before that answer. Rejects with a RangeError if the message does not fit a frame.
   */
  async send(body: object, payload?: Uint8Array): Promise<QueuedMessage> {
    if (this.#closing) throw this.#ended ?? new ProducerEndedError("closed", "the client is closed");
    // It waits after others that wait, so that the order is kept.
    if (this.#waitingForRoom.length === 0 && this.#hasRoom()) return this.#take(body, payload);
    return new Promise((resolve, reject) => {
      this.#waitingForRoom.push({
        enter: () => {
          try {
            resolve(this.#take(body, payload));
          } catch (error) {
            reject(error);
          }
        },
        reject,
      });
    });
  }

  /** Sends and waits for the answer. Resolves when the message is durable. Rejects with a MessageRefusedError. */
  async deliver(body: object, payload?: Uint8Array): Promise<void> {
    const message = await this.send(body, payload);
    await message.acknowledged;
  }

  /** Resolves with the service's pong. Rejects if the connection ends before. */
  async ping(): Promise<void> {
    await this.welcomed();
    const sequence = ++this.#lastPing;
    const answered = new Promise<void>((resolve, reject) => this.#pings.set(sequence, { resolve, reject }));
    this.#write({ kind: "ping", sequence });
    await answered;
  }

  /** Takes no more messages, waits until all are answered, then disconnects. */
  async close(): Promise<void> {
    this.#closing = true;
    if (this.#ended === undefined && (this.#queue.count > 0 || this.#waitingForRoom.length > 0)) {
      await this.#wait(this.#waitingForQuiet);
    }
    this.destroy();
  }

  /** Disconnects at once. Promises of unanswered messages reject. The service may have stored these messages or not. */
  destroy(): void {
    this.#end(new ProducerEndedError("closed", "the client was closed"));
  }

  #wait(among: Waiting[]): Promise<void> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    return new Promise((resolve, reject) => among.push({ resolve, reject }));
  }

  #hasRoom(): boolean {
    return this.#queue.count === 0 || (this.#queue.sizeBytes < this.#byteLimit && this.#queue.count < this.#countLimit);
  }

  #take(body: object, payload: Uint8Array | undefined): QueuedMessage {
    const message = this.#queue.add(body, payload);
    this.#schedulePump();
    return message;
  }

  #connect(): void {
    const socket = connect(this.#options.address);
    this.#socket = socket;
    // Frames are already written in batches: waiting for more would only delay them.
    socket.setNoDelay(true);
    socket.setKeepAlive(true, this.#keepAliveMs);
    const parser = new FrameParser({
      buffers: new BufferPool(0),
      onFrame: (frame) => this.#receive(socket, frame),
    });
    let reason = "the service closed the connection";
    socket.on("connect", () => {
      const { producer, token } = this.#options;
      const instance = this.#instance;
      this.#write({ kind: "hello", sequence: 0, body: { protocol: PROTOCOL_VERSION, producer, instance, token } });
    });
    socket.on("data", (chunk) => {
      const fault = parser.push(chunk);
      if (fault !== undefined) socket.destroy(new Error(fault.message));
    });
    socket.on("drain", () => this.#pump());
    socket.on("error", (error) => {
      reason = error.message;
    });
    socket.on("close", () => {
      parser.close();
      if (this.#socket === socket) this.#disconnected(reason);
    });
  }

  #disconnected(reason: string): void {
    this.#socket = undefined;
    this.#welcomed = false;
    clearInterval(this.#keepAliveTimer);
    for (const ping of this.#pings.values()) ping.reject(new Error(reason));
    this.#pings.clear();
    if (this.#ended !== undefined) return;
    this.#options.onDisconnected?.(reason);
    const { reconnectFirstMs = 50, reconnectLongestMs = 2_000 } = this.#options;
    const pauseMs = Math.min(reconnectLongestMs, reconnectFirstMs * 2 ** Math.min(this.#failedAttempts++, 30));
    // The random part spreads out producers that lost the service at the same moment.
    this.#reconnectTimer = setTimeout(() => this.#connect(), pauseMs * (0.5 + Math.random() / 2));
  }

  #receive(socket: Socket, frame: Frame): void {
    if (socket !== this.#socket) return;
    // Programs that share a name by mistake take the connection from each other. Their pauses keep growing, even if they send nothing.
    if (!this.#isNameShared && (frame.kind === "ack" || frame.kind === "pong")) this.#failedAttempts = 0;
    if (frame.kind === "ack") {
      this.#queue.acknowledge(frame.sequence);
      this.#answered();
    } else if (frame.kind === "pong") {
      this.#pings.get(frame.sequence)?.resolve();
      this.#pings.delete(frame.sequence);
    } else if (frame.kind === "refuse" || frame.kind === "welcome") {
      const decoded = decodeBody(frame.body);
      if (!decoded.ok) socket.destroy(new Error(`the service sent a bad ${frame.kind}: ${decoded.fault.message}`));
      else if (frame.kind === "refuse") this.#refused(socket, frame.sequence, decoded.body);
      else this.#receiveWelcome(socket, decoded.body);
    } else {
      socket.destroy(new Error(`the service sent a ${frame.kind}, which only producers send`));
    }
  }

  #receiveWelcome(socket: Socket, body: JsonObject): void {
    const { committed, yours, last_run_id: lastRunId = null, service_version: serviceVersion } = body;
    if (
      typeof committed !== "number" ||
      typeof yours !== "number" ||
      !(lastRunId === null || typeof lastRunId === "string") ||
      typeof serviceVersion !== "string"
    ) {
      socket.destroy(new Error("the service sent a welcome without committed, yours, last_run_id or service_version"));
      return;
    }
    const { acknowledgedLost, isShared, isForeign } = this.#queue.continueAfter(committed, yours);
    if (isForeign) {
      const message = `another process sends as instance ${this.#instance} of ${this.#options.producer}: its message ${yours} is committed`;
      this.#end(new ProducerEndedError("instance_in_use", message));
      return;
    }
    if (lastRunId !== null && (this.#lastRunId === null || lastRunId > this.#lastRunId)) this.#lastRunId = lastRunId;
    this.#welcomed = true;
    this.#isNameShared = isShared;
    this.#keepAliveTimer = setInterval(() => this.#keepAlive(), this.#keepAliveMs);
    this.#options.onWelcome?.({ serviceVersion, committed, yours, lastRunId, acknowledgedLost });
    for (const waiting of this.#waitingForWelcome.splice(0)) waiting.resolve();
    this.#pump();
  }

  #refused(socket: Socket, sequence: number, body: JsonObject): void {
    const params = typeof body.params === "object" && !Array.isArray(body.params) ? (body.params ?? {}) : {};
    const refusal = { code: String(body.code), message: String(body.message), params };
    if (sequence > 0 && this.#welcomed && !CONNECTION_REFUSALS.has(refusal.code)) {
      const highest = refusal.params.last_run_id;
      if (refusal.code === "id_out_of_order" && typeof highest === "string" && highest > (this.#lastRunId ?? "")) {
        this.#lastRunId = highest;
      }
      this.#options.onRefused?.(refusal);
      this.#queue.refuse(sequence, new MessageRefusedError(refusal));
      this.#answered();
    } else if (PASSING_REFUSALS.has(refusal.code)) {
      socket.destroy(new Error(`${refusal.code}: ${refusal.message}`));
    } else {
      this.#end(new ProducerEndedError(refusal.code, `the service refused the connection: ${refusal.message}`));
    }
  }

  #answered(): void {
    while (this.#waitingForRoom.length > 0 && this.#hasRoom()) this.#waitingForRoom.shift()?.enter();
    if (this.#queue.count > 0) return;
    for (const waiting of this.#waitingForQuiet.splice(0)) waiting.resolve();
  }

  #keepAlive(): void {
    if (!this.#wroteSinceKeepAlive) this.#write({ kind: "ping", sequence: ++this.#lastPing });
    this.#wroteSinceKeepAlive = false;
  }

  #write(frame: FrameToSend): void {
    for (const part of encodeFrame(frame)) this.#socket?.write(part);
    this.#wroteSinceKeepAlive = true;
  }

  /** Messages of one turn of the event loop go out in one write. */
  #schedulePump(): void {
    if (this.#pumpScheduled) return;
    this.#pumpScheduled = true;
    setImmediate(() => {
      this.#pumpScheduled = false;
      this.#pump();
    });
  }

  #pump(): void {
    const socket = this.#socket;
    if (socket === undefined || !this.#welcomed) return;
    socket.cork();
    while (!socket.writableNeedDrain) {
      const frame = this.#queue.takeNextToSend();
      if (frame === undefined) break;
      for (const part of frame) socket.write(part);
      this.#wroteSinceKeepAlive = true;
    }
    socket.uncork();
  }

  #end(error: ProducerEndedError): void {
    this.#closing = true;
    if (this.#ended !== undefined) return;
    this.#ended = error;
    clearTimeout(this.#reconnectTimer);
    clearInterval(this.#keepAliveTimer);
    this.#socket?.destroy();
    this.#queue.rejectAll(error);
    for (const among of [this.#waitingForRoom, this.#waitingForWelcome, this.#waitingForQuiet]) {
      for (const waiting of among.splice(0)) waiting.reject(error);
    }
  }
}
