import { connect, createServer, type Server, type Socket } from "node:net";
import { LIMITS } from "../../core/limits.js";
import type { Timers } from "../../core/timers.js";
import {
  descriptorLimit,
  nodeFileSystem,
  removeOwnName,
  restrictSocket,
  type SocketAccess,
  socketPathState,
} from "../../storage/disk/file-system.js";
import { shortageOf } from "../../storage/disk/file-system-error.js";
import { BufferPool } from "../buffer-pool.js";
import { unavailable } from "./bounds/bounded-refusal.js";
import {
  type ConnectionLimits,
  connectionLimits,
  PendingConnections,
  type Transport,
} from "./bounds/connection-limits.js";
import { LinkBudget } from "./bounds/link-budget.js";
import { TokenFailures } from "./bounds/token-failures.js";
import type { MessageIntake, ProducerProgress } from "./message-intake.js";
import { LinkSession } from "./session/link-session.js";
import type { SessionHost } from "./session/session-host.js";

/** `sun_path` of Linux holds 108 bytes, the last one a zero. */
const MAXIMUM_SOCKET_PATH_BYTES = 107;
const TICK_MS = 1_000;
/** At most this many programs that share a name by mistake are told apart. */
const MOST_OUSTED = 8;

export class LinkListenError extends Error {
  readonly code: "cell_socket_unusable" | "cell_listen_failed";

  constructor(code: "cell_socket_unusable" | "cell_listen_failed", message: string) {
    super(message);
    this.name = "LinkListenError";
    this.code = code;
  }
}

export interface LinkServerOptions {
  intake: MessageIntake;
  timers: Timers;
  /** Who may connect to the Unix socket; default: its owner alone. */
  socketAccess?: SocketAccess | undefined;
  /** Called for an error of the service itself. */
  report(error: unknown, producer: string | null): void;
  /** Called when a wrong token came from an address. */
  wrongToken?(address: string): void;
}

/** The service's side of the cell link. It listens, keeps one session for each producer, and bounds the memory of all sessions. */
export class LinkServer {
  readonly #intake: MessageIntake;
  readonly #timers: Timers;
  readonly #access: SocketAccess;
  readonly #host: SessionHost<LinkSession>;
  readonly #servers: Server[] = [];
  /** The Unix socket, with the identity of its file. */
  #socket: { path: string; server: Server; identity: string | undefined } | null = null;
  readonly #sessions = new Set<LinkSession>();
  readonly #byProducer = new Map<string, LinkSession>();
  /**
   * Instances that lost their connection to a session, or to an older session that this one replaced. The newest comes
   * last.
   */
  readonly #ousted = new WeakMap<LinkSession, readonly (string | null)[]>();
  readonly #limits: ConnectionLimits;
  readonly #pending: Readonly<Record<Transport, PendingConnections<LinkSession>>>;
  readonly #wrongTokens: TokenFailures;
  readonly #answering = new Set<LinkSession>();
  readonly #budget = new LinkBudget({
    pendingLimitBytes: LIMITS.linkPendingBytes,
    claimLimitBytes: LIMITS.linkClaimedPayloadBytes,
  });
  #isPaused = false;
  #arePayloadsHeld = false;
  #ticking: unknown = null;
  #isClosed = false;
  #onIdle: (() => void) | undefined;

  constructor(options: LinkServerOptions) {
    this.#intake = options.intake;
    this.#timers = options.timers;
    this.#access = options.socketAccess ?? "owner";
    this.#limits = connectionLimits(descriptorLimit());
    const { socket, tcp } = this.#limits;
    this.#pending = { socket: new PendingConnections(socket.pending), tcp: new PendingConnections(tcp.pending) };
    this.#wrongTokens = new TokenFailures(options.timers);
    this.#host = {
      intake: options.intake,
      buffers: new BufferPool(),
      budget: this.#budget,
      mayTakePayloads: () => !this.#arePayloadsHeld,
      hasPlace: (session, name) => this.#hasPlace(session, name),
      entered: (session, producer) => this.#entered(session, producer),
      wrongToken: (address) => {
        this.#wrongTokens.failed(address);
        options.wrongToken?.(address);
      },
      hasAnswers: (session) => this.#answering.add(session),
      ended: (session) => this.#ended(session),
      report: options.report,
    };
    this.#tickLater();
  }

  /** Number of connected producers. */
  get connectionCount(): number {
    return this.#byProducer.size;
  }

  /**
   * Listens on a Unix socket with mode 0600, or 0660 for its group. Replaces a socket file that nobody listens on any more.
   *
   * @throws {LinkListenError} The path is too long, or something else has it.
   */
  async listenOnSocket(path: string): Promise<void> {
    const bytes = Buffer.byteLength(path);
    if (bytes > MAXIMUM_SOCKET_PATH_BYTES) {
      throw unusable(
        path,
        `it is ${bytes} bytes long, but may have at most ${MAXIMUM_SOCKET_PATH_BYTES}: name a shorter path with --cell-socket`,
      );
    }
    await clearPath(path);
    const server = this.#createServer(null);
    let identity: string | undefined;
    try {
      await listen(server, () => {
        server.listen(path);
        // The socket is bound now, and no connection was accepted yet.
        if (server.listening) restrictSocket(path, this.#access);
      });
      identity = (await nodeFileSystem.statusOf(path))?.identity;
    } catch (error) {
      // It may listen already, and the next attempt would take it for another process.
      server.close();
      throw unusable(path, (error as Error).message);
    }
    if (this.#isClosed) server.close();
    this.#servers.push(server);
    this.#socket = { path, server, identity };
  }

  /**
   * Listens again on the Unix socket if its file was removed or replaced: without the file nobody can connect. Connections stay.
   *
   * @returns true if it was
   * @throws {LinkListenError} Something else has the path.
   */
  async restoreSocket(): Promise<boolean> {
    const socket = this.#socket;
    if (socket === null || this.#isClosed) return false;
    const { path, server, identity } = socket;
    const status = await nodeFileSystem.statusOf(path);
    if (this.#isClosed || (status !== null && status.identity === identity)) return false;
    // Closing removes whatever has the name, even if it is not ours. So clearPath first checks whether it may be
    // removed.
    await clearPath(path);
    if (this.#isClosed) return false;
    server.close();
    const at = this.#servers.indexOf(server);
    if (at >= 0) this.#servers.splice(at, 1);
    await this.listenOnSocket(path);
    return true;
  }

  /**
   * Listens on TCP. Every connection must show the token.
   *
   * @returns the port, which the system chose if it was 0
   * @throws {LinkListenError}
   */
  async listenOnTcp(host: string, port: number, token: string): Promise<number> {
    const server = this.#createServer(token);
    try {
      await listen(server, () => server.listen({ host, port, exclusive: true }));
    } catch (error) {
      throw new LinkListenError("cell_listen_failed", `cannot listen on ${host}:${port}: ${(error as Error).message}`);
    }
    this.#servers.push(server);
    const address = server.address();
    return typeof address === "object" && address !== null ? address.port : port;
  }

  /** Whether a producer of this name is connected. */
  isConnected(name: string): boolean {
    return this.#byProducer.has(name);
  }

  /** Takes a connection from a server here, or from a simulation. @param token what it must show; null: nothing */
  accept(socket: Socket, token: string | null): void {
    const address = socket.remoteAddress ?? "";
    const session = new LinkSession(socket, this.#host, { token, address });
    this.#sessions.add(session);
    if (this.#isClosed) {
      session.close();
      return;
    }
    this.#pending[session.transport].add(session, address)?.close();
    if (this.#isPaused) session.setServicePaused(true);
    if (token !== null && this.#wrongTokens.isSlowed(address)) session.readLater();
  }

  /** Called when a group of records is committed: sends the answers that are due, those of each connection in one go. */
  flush(): void {
    const due = [...this.#answering];
    this.#answering.clear();
    for (const session of due) session.flush();
  }

  /** Stops reading from all connections, or goes on. Used when the service cannot keep up. */
  setPaused(paused: boolean): void {
    // After `stopReading` nothing goes on.
    if (this.#isPaused === paused || (this.#isClosed && !paused)) return;
    this.#isPaused = paused;
    for (const session of this.#sessions) session.setServicePaused(paused);
  }

  /**
   * Holds back messages with a payload, or lets them go on. These are captures (workers/cell-link/README.md). A
   * connection is read up to its first payload. Connections without a payload go on.
   */
  setPayloadsHeld(held: boolean): void {
    if (this.#arePayloadsHeld === held) return;
    this.#arePayloadsHeld = held;
    if (!held && !this.#isClosed) for (const session of this.#sessions) session.takeHeldPayload();
  }

  /** Tells all connections that the service takes no more messages, and closes them. */
  refuseAll(message: string): void {
    for (const session of this.#sessions) session.refuseConnection(unavailable(message));
  }

  /** Takes no more connections and reads no more. Messages that were taken are still answered. */
  stopReading(): void {
    this.#isClosed = true;
    this.setPaused(true);
    this.#stopListening();
  }

  /** Stops listening at once. The socket's file is removed if it is still ours. */
  #stopListening(): void {
    const closeAll = (): void => {
      for (const server of this.#servers) server.close();
    };
    const { path, identity } = this.#socket ?? {};
    try {
      if (path !== undefined && identity !== undefined) removeOwnName(path, identity, closeAll);
    } catch {
      // The account may no longer write to the folder. Then closing removes nothing from it either.
    }
    closeAll();
  }

  /** Sends the last answers and ends all connections; after `stopReading`. */
  async close(): Promise<void> {
    this.flush();
    for (const session of this.#sessions) session.end();
    if (this.#sessions.size > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    if (this.#ticking !== null) this.#timers.clear(this.#ticking);
    this.#ticking = null;
    this.#wrongTokens.stop();
  }

  #createServer(token: string | null): Server {
    // allowHalfOpen: a producer may end its side and still wait for answers.
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.accept(socket, token));
    // A connection could not be accepted, for example because no descriptor was free. The producer connects again.
    server.on("error", (error) => {
      if (server.listening) this.#host.report(error, null);
    });
    return server;
  }

  /** A connection that replaces one of the same name takes its place. */
  #hasPlace({ transport }: LinkSession, name: string): boolean {
    const { producers } = this.#limits[transport];
    let taken = 0;
    for (const [other, session] of this.#byProducer) if (session.transport === transport && other !== name) taken++;
    return taken < producers;
  }

  #entered(session: LinkSession, producer: ProducerProgress): void {
    this.#pending[session.transport].remove(session);
    const older = this.#byProducer.get(producer.name);
    this.#byProducer.set(producer.name, session);
    if (older !== undefined) this.#takesOver(session, older, producer);
    older?.close();
    this.#intake.connected(producer);
  }

  /**
   * Reports an instance that takes back the connection that another instance took from it. Then two programs have one
   * name. This also works if nothing was stored yet.
   */
  #takesOver(session: LinkSession, older: LinkSession, producer: ProducerProgress): void {
    const { instance } = session;
    const before = this.#ousted.get(older) ?? [];
    if (instance !== null && before.includes(instance)) this.#intake.alternated(producer);
    const ousted = [...before, older.instance].filter((one) => one !== null && one !== instance);
    this.#ousted.set(session, ousted.slice(-MOST_OUSTED));
  }

  #ended(session: LinkSession): void {
    this.#sessions.delete(session);
    this.#answering.delete(session);
    this.#pending[session.transport].remove(session);
    const { producer } = session;
    if (producer !== undefined && this.#byProducer.get(producer.name) === session) {
      this.#byProducer.delete(producer.name);
      this.#intake.disconnected(producer);
    }
    if (this.#sessions.size === 0) this.#onIdle?.();
  }

  #tickLater(): void {
    this.#ticking = this.#timers.set(() => {
      for (const session of this.#sessions) session.tick();
      this.#tickLater();
    }, TICK_MS);
  }
}

/** Removes a socket's file that nobody listens on any more. @throws {LinkListenError} if something else has the path */
async function clearPath(path: string): Promise<void> {
  const state = socketPathState(path);
  if (state === "other") throw unusable(path, "something that is not a socket has this path");
  if (state === "free") return;
  if (await isAnswered(path)) throw unusable(path, "another process listens there");
  await nodeFileSystem.unlink(path);
}

function unusable(path: string, why: string): LinkListenError {
  return new LinkListenError("cell_socket_unusable", `the cell link cannot use the socket ${path}: ${why}`);
}

function listen(server: Server, start: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.once("listening", () => {
      server.off("error", reject);
      resolve();
    });
    start();
  });
}

/** @throws {LinkListenError} The machine lacks what is needed to try. */
function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.on("connect", () => {
      socket.destroy();
      resolve(true);
    });
    // Only these two codes mean that nobody listens. After any other error somebody may still listen.
    socket.on("error", (error: NodeJS.ErrnoException) => {
      // EAGAIN: more connections wait there than fit, so somebody listens.
      const lacking = error.code === "EAGAIN" ? null : shortageOf(error);
      if (lacking !== null) reject(unusable(path, lacking));
      else resolve(error.code !== "ECONNREFUSED" && error.code !== "ENOENT");
    });
  });
}
