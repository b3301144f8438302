import { createServer, type Server, type Socket } from "node:net";
import type { Test } from "tap";
import type { JsonObject } from "../../../core/json/json.js";
import type { Refusal } from "../../../core/link/refusal.js";
import { BufferPool } from "../../../workers/buffer-pool.js";
import { encodeFrame, FrameParser, type FrameToSend } from "../../../workers/cell-link/frame-codec.js";
import { decodeBody } from "../../../workers/cell-link/strict-message-pack.js";

export interface LinkMessage {
  producer: string;
  sequence: number;
  body: JsonObject;
  payload: Uint8Array;
}

interface ProducerState {
  committed: number;
  /** The last sequence number of each instance. */
  instances: Map<string, number>;
  refusals: Map<number, Refusal<string>>;
  socket: Socket | undefined;
}

export interface FakeLinkServerOptions {
  /** Decides a message; without it all are taken. */
  decide?(message: LinkMessage): Refusal<string> | undefined;
  /** How many bytes a new connection may bring before it is broken in the middle of what it does. */
  breakAfterBytes?(): number | undefined;
  /** Whether the ack of what was just committed goes out now; else with a later one. Once false, `ackAll` sends what is owed. */
  ackNow?(message: LinkMessage): boolean;
  /** Refuses the connection when a message comes. */
  refuseMessage?(): Refusal<string> | undefined;
  /** Refuses the hello. */
  refuseHello?(): Refusal<string> | undefined;
}

/**
 * The service's side of the cell link, in memory: numbers, acks, stored refusals and resends as workers/cell-link/README.md says, with breaks and
 * late acks where a test wants them. `messages` are the effects, each once.
 */
export class FakeLinkServer {
  readonly messages: LinkMessage[] = [];
  /** Breaches of the session by the producer. */
  readonly faults: string[] = [];
  readonly hellos: JsonObject[] = [];
  connections = 0;
  resends = 0;
  pings = 0;
  lastRunId: string | null = null;
  readonly #options: FakeLinkServerOptions;
  readonly #producers = new Map<string, ProducerState>();
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;

  constructor(options: FakeLinkServerOptions = {}) {
    this.#options = options;
  }

  /** As `listen`; the end of the test stops it. */
  listenFor(t: Test, path: string): Promise<void> {
    t.teardown(() => this.stop());
    return this.listen(path);
  }

  async listen(path: string): Promise<void> {
    const server = createServer((socket) => this.#serve(socket));
    this.#server = server;
    await new Promise<void>((resolve, reject) => server.once("error", reject).listen(path, resolve));
  }

  /** As a service that is killed: connections break, what is committed stays for the next `listen`. */
  async stop(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    const closed = new Promise((resolve) => server.close(resolve));
    this.breakConnections();
    await closed;
    this.#server = undefined;
  }

  breakConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Sets what a producer has committed, as if its store had been put back or another process had sent. */
  setCommitted(producer: string, committed: number): void {
    const state = this.#stateOf(producer);
    state.committed = committed;
    for (const [instance, last] of state.instances) state.instances.set(instance, Math.min(last, committed));
  }

  /** Sets how far an instance has come, as if another process had sent under it. */
  setInstance(producer: string, instance: string, last: number): void {
    this.#stateOf(producer).instances.set(instance, last);
  }

  ackAll(): void {
    for (const { socket, committed } of this.#producers.values()) {
      if (socket !== undefined) send(socket, { kind: "ack", sequence: committed });
    }
  }

  #stateOf(producer: string): ProducerState {
    let state = this.#producers.get(producer);
    if (state === undefined) {
      state = { committed: 0, instances: new Map(), refusals: new Map(), socket: undefined };
      this.#producers.set(producer, state);
    }
    return state;
  }

  #serve(socket: Socket): void {
    this.connections++;
    this.#sockets.add(socket);
    let producer: string | undefined;
    let instance = "";
    let left = this.#options.breakAfterBytes?.() ?? Number.POSITIVE_INFINITY;
    const parser = new FrameParser({
      buffers: new BufferPool(0),
      onFrame: (frame) => {
        if (frame.kind === "ping") {
          this.pings++;
          send(socket, { kind: "pong", sequence: frame.sequence });
          return;
        }
        const decoded = decodeBody(frame.body);
        if (!decoded.ok) {
          this.faults.push(decoded.fault.message);
          socket.destroy();
        } else if (frame.kind === "hello" && producer === undefined) {
          instance = String(decoded.body.instance);
          producer = this.#hello(socket, decoded.body);
        } else if (frame.kind === "message" && producer !== undefined) {
          const { sequence, payload } = frame;
          this.#message(socket, instance, { producer, sequence, body: decoded.body, payload });
        } else {
          this.faults.push(`${frame.kind} out of place`);
          socket.destroy();
        }
      },
    });
    socket.on("data", (chunk) => {
      const taken = chunk.subarray(0, left);
      left -= taken.length;
      const fault = parser.push(taken);
      if (fault !== undefined) this.faults.push(fault.message);
      if (left <= 0 || fault !== undefined) {
        parser.close();
        socket.destroy();
      }
    });
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(socket));
  }

  #hello(socket: Socket, body: JsonObject): string | undefined {
    this.hellos.push(body);
    const refusal = this.#options.refuseHello?.();
    if (refusal !== undefined) {
      socket.end(Buffer.concat(encodeFrame({ kind: "refuse", sequence: 0, body: refusal })));
      return undefined;
    }
    const producer = String(body.producer);
    const state = this.#stateOf(producer);
    state.socket?.destroy();
    state.socket = socket;
    const { committed } = state;
    const yours = state.instances.get(String(body.instance)) ?? 0;
    const welcome = { protocol: 1, service_version: "fake", committed, yours, last_run_id: this.lastRunId };
    send(socket, { kind: "welcome", sequence: 0, body: welcome });
    return producer;
  }

  #message(socket: Socket, instance: string, message: LinkMessage): void {
    const state = this.#stateOf(message.producer);
    if (state.socket !== socket) return;
    const { sequence } = message;
    const refused = this.#options.refuseMessage?.();
    if (refused !== undefined) {
      socket.end(Buffer.concat(encodeFrame({ kind: "refuse", sequence, body: refused })));
      return;
    }
    if (sequence <= state.committed) {
      if (sequence > (state.instances.get(instance) ?? 0)) this.faults.push(`sequence ${sequence} is another's`);
      this.resends++;
      const stored = state.refusals.get(sequence);
      if (stored === undefined) send(socket, { kind: "ack", sequence });
      else send(socket, { kind: "refuse", sequence, body: stored });
      return;
    }
    if (sequence !== state.committed + 1) {
      this.faults.push(`sequence ${sequence} after ${state.committed}`);
      socket.destroy();
      return;
    }
    const refusal = this.#options.decide?.(message);
    state.committed = sequence;
    state.instances.set(instance, sequence);
    if (refusal === undefined) {
      this.messages.push(message);
      if (message.body.type === "run.create") this.lastRunId = String(message.body.id);
    } else {
      state.refusals.set(sequence, refusal);
      send(socket, { kind: "refuse", sequence, body: refusal });
    }
    if (this.#options.ackNow?.(message) ?? true) send(socket, { kind: "ack", sequence });
  }
}

function send(socket: Socket, frame: FrameToSend): void {
  if (!socket.destroyed) for (const part of encodeFrame(frame)) socket.write(part);
}
