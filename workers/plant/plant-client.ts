import { DeliverPolicy, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, credsAuthenticator, headers, type NatsConnection } from "@nats-io/transport-node";
import { CAPTURE_STREAM } from "./capture-message.js";
import { decodeFields, LEAST_PAYLOAD_BYTES, LOG_STREAM, LOG_SUBJECTS, type MessageFields } from "./log-message.js";
import {
  captureStreamFaults,
  firstDifference,
  logStreamFaults,
  type PlantLimits,
  plantStreams,
  type StreamSettings,
} from "./plant-streams.js";

/** No server answers for JetStream: neither this one, nor one that it is connected with. */
const NO_JETSTREAM = /jetstream (?:is )?not enabled|no responders/i;

/** How long the server may take to connect or to answer. A stopped server (SIGSTOP) is found out by this. */
const ANSWER_MS = 5_000;
const LEAST_VERSION = [2, 12] as const;
/** Messages that a hub asks for before it has taken the earlier ones. */
const READ_AHEAD_BYTES = 8 * 1024 * 1024;
/** Codes of the JetStream API. */
const WRONG_LAST_SEQUENCE = [10071, 10164];
const STREAM_NOT_FOUND = 10059;
const STREAM_NAME_IN_USE = 10058;
/** What clients and servers say of a user without the right. */
const REFUSED = /authori[sz]ation violation|authentication|permissions? violation/i;

export interface PlantAddress {
  /** `nats://host:port`, one or more of one cluster. */
  servers: readonly string[];
  /** Content of a credentials file (nsc); null: none. */
  credentials: string | null;
  /** Path of an authority's certificate in PEM; null: those that Node trusts. */
  caPath: string | null;
}

export interface StoredMessage {
  subject: string;
  /** Its place in the stream, from 1. */
  streamSequence: number;
  /** When the stream got it, in milliseconds since the Unix epoch. */
  timeMs: number;
  header(name: string): string;
  bytes: Uint8Array;
}

/** What a stream has. */
export interface StreamState {
  settings: StreamSettings;
  /** When it was made, in milliseconds since the Unix epoch. */
  createdMs: number;
  /** Of the oldest message that is still there, and of the newest; 0 without any message. */
  firstSequence: number;
  lastSequence: number;
  /** When the oldest message came, in milliseconds since the Unix epoch; 0 without any message. */
  firstTimeMs: number;
  messages: number;
}

/** A message of the log stream, in the order of the stream. */
export interface LogMessage extends StoredMessage {
  /** When the stream took it, in microseconds since the Unix epoch. */
  streamTimeUs: number;
}

/** The plant refuses, or cannot be used: one line for people. It stays so until somebody changes something. */
export class PlantRefusal extends Error {}

/** The server expected another last message: somebody else has published, or an earlier publish was taken after all. */
export class OtherLastMessage extends Error {}

/** A connection to the plant's JetStream. After an error, close it and open another one. */
export class PlantClient {
  readonly #connection: NatsConnection;
  #managing: Promise<JetStreamManager> | undefined;

  private constructor(connection: NatsConnection) {
    this.#connection = connection;
  }

  /** @throws PlantRefusal for a server that cannot be used; Error if none can be reached */
  static async connect({ servers, credentials, caPath }: PlantAddress): Promise<PlantClient> {
    const connection = await connect({
      servers: [...servers],
      timeout: ANSWER_MS,
      reconnect: false,
      pingInterval: ANSWER_MS,
      maxPingOut: 2,
      name: "inspection-service",
      ...(credentials !== null && { authenticator: credsAuthenticator(new TextEncoder().encode(credentials)) }),
      ...(caPath !== null && { tls: { caFile: caPath } }),
    }).catch((error: unknown) => {
      throw connectFault(error, servers);
    });
    const client = new PlantClient(connection);
    try {
      const fault = serverFault(connection.info ?? {});
      if (fault !== null) throw new PlantRefusal(`the NATS server ${fault}`);
      return client;
    } catch (error) {
      await client.close();
      throw error;
    }
  }

  /** @throws PlantRefusal if the log stream is missing, or may drop messages */
  async requireLogStream(): Promise<void> {
    const { settings } = await this.#requireStream(LOG_STREAM);
    const faults = logStreamFaults(settings);
    if (faults.length > 0) {
      throw new PlantRefusal(`the stream ${LOG_STREAM} must keep every message, but has ${faults.join(", ")}`);
    }
  }

  /** @throws PlantRefusal if the capture stream is missing, or does not take chunks */
  async requireCaptureStream(): Promise<StreamState> {
    const state = await this.#requireStream(CAPTURE_STREAM);
    const faults = captureStreamFaults(state.settings);
    if (faults.length === 0) return state;
    throw new PlantRefusal(`the stream ${CAPTURE_STREAM} does not take captures: it has ${faults.join(", ")}`);
  }

  async #requireStream(name: string): Promise<StreamState> {
    const state = await this.streamState(name);
    if (state !== null) return state;
    throw new PlantRefusal(`the stream ${name} is not there: make it with \`inspection-service plant init\``);
  }

  /** Null if there is no such stream. @throws PlantRefusal without the right to ask */
  async streamState(name: string): Promise<StreamState | null> {
    const manager = await this.#manager();
    const info = await manager.streams.info(name).catch((error: unknown) => {
      if (codeOf(error) === STREAM_NOT_FOUND) return null;
      throw permissionFault(error, `look at the stream ${name}`);
    });
    if (info === null) return null;
    const { first_seq, last_seq, messages, first_ts } = info.state;
    return {
      settings: info.config as StreamSettings,
      createdMs: Date.parse(info.created),
      firstSequence: messages === 0 ? 0 : first_seq,
      lastSequence: last_seq,
      firstTimeMs: messages === 0 ? 0 : Date.parse(first_ts as unknown as string),
      messages,
    };
  }

  /** Makes the log stream. @throws PlantRefusal if it is there with other settings */
  async createLogStream(replicas: number): Promise<void> {
    const [log] = plantStreams({ replicas, captureDays: null, captureBytes: null });
    await this.#createStream(log as StreamSettings);
  }

  /**
   * Makes the streams that are missing. All are looked at first, so that nothing is made if one has other settings.
   *
   * @returns their names, each with whether it was made now
   * @throws PlantRefusal if one has other settings, or cannot be made
   */
  async createStreams(limits: PlantLimits): Promise<{ name: string; isNew: boolean }[]> {
    const streams = plantStreams(limits);
    const missing: StreamSettings[] = [];
    for (const wanted of streams) {
      const there = await this.streamState(wanted.name);
      const difference = there === null ? null : firstDifference(there.settings, wanted);
      if (difference !== null) {
        throw new PlantRefusal(`the stream ${wanted.name} is there with ${difference}; nothing was changed`);
      }
      if (there === null) missing.push(wanted);
    }
    for (const wanted of missing) await this.#createStream(wanted);
    return streams.map((stream) => ({ name: stream.name, isNew: missing.includes(stream) }));
  }

  async #createStream(settings: StreamSettings): Promise<void> {
    const manager = await this.#manager();
    const { retention, discard, storage, ...others } = settings;
    const stream = {
      ...others,
      storage: storage as "file",
      retention: "limits",
      discard: discard as "new" | "old",
    } as const;
    await manager.streams.add(stream).catch((error: unknown) => {
      const { name, num_replicas: replicas } = settings;
      if (codeOf(error) === STREAM_NAME_IN_USE)
        throw new PlantRefusal(`the stream ${name} is there already, with other settings`);
      const fault = permissionFault(error, `make the stream ${name}`);
      if (fault instanceof PlantRefusal || codeOf(error) === undefined) throw fault;
      const hint = replicas > 1 ? "; --replicas must not be more than the number of servers" : "";
      throw new PlantRefusal(`the stream ${name} cannot be made: ${fault.message}${hint}`);
    });
  }

  /** The last message of these subjects; null if there is none. */
  async lastMessage(subjects: string, stream = LOG_STREAM): Promise<StoredMessage | null> {
    return this.#message(stream, { last_by_subj: subjects });
  }

  /** The last message of this subject of the capture stream; null if there is none, or no such stream. */
  async lastChunk(subject: string): Promise<StoredMessage | null> {
    return this.lastMessage(subject, CAPTURE_STREAM).catch((error: unknown) => {
      if (codeOf(error) === STREAM_NOT_FOUND) return null;
      throw error;
    });
  }

  /** The first message of these subjects from this place in the stream on; null if there is none. */
  async nextMessage(stream: string, subjects: string, fromSequence: number): Promise<StoredMessage | null> {
    return this.#message(stream, { seq: fromSequence, next_by_subj: subjects });
  }

  /** The last message of these subjects in the log stream before this place; null if there is none. */
  async previousMessage(subject: string, beforeSequence: number): Promise<StoredMessage | null> {
    // The server finds messages only forwards. So the search begins further and further back.
    for (let back = 1; ; back *= 2) {
      const from = Math.max(1, beforeSequence - back);
      let found: StoredMessage | null = null;
      for (let next = from; ; next = found.streamSequence + 1) {
        const message = await this.nextMessage(LOG_STREAM, subject, next);
        if (message === null || message.streamSequence >= beforeSequence) break;
        found = message;
      }
      if (found !== null || from === 1) return found;
    }
  }

  async #message(
    stream: string,
    query: { last_by_subj: string } | { seq: number; next_by_subj: string },
  ): Promise<StoredMessage | null> {
    const manager = await this.#manager();
    const message = await manager.streams.getMessage(stream, query as { last_by_subj: string }).catch((error) => {
      throw permissionFault(error, `read the stream ${stream}`);
    });
    if (message === null) return null;
    const { subject, seq, time, header, data } = message;
    const get = (name: string) => header?.get(name) ?? "";
    return { subject, streamSequence: seq, timeMs: time.getTime(), header: get, bytes: data };
  }

  /**
   * Stores a message if the last one of `subjects` has the stream sequence `expected` (0: there is none).
   * @returns its own stream sequence, when the stream's replicas have it
   * @throws OtherLastMessage if another one is the last; any other error leaves open whether the message was stored
   */
  async publish(
    subject: string,
    fields: Record<string, string>,
    bytes: Uint8Array,
    { subjects, expected, stream = LOG_STREAM }: { subjects: string; expected: number; stream?: string },
  ): Promise<number> {
    const header = headers();
    for (const [name, value] of Object.entries(fields)) header.set(name, value);
    const expect = { streamName: stream, lastSubjectSequence: expected, lastSubjectSequenceSubject: subjects };
    try {
      const options = { headers: header, expect, timeout: ANSWER_MS, retries: 0 };
      return (await jetstream(this.#connection).publish(subject, bytes, options)).seq;
    } catch (error) {
      if (WRONG_LAST_SEQUENCE.includes(codeOf(error) ?? 0))
        throw new OtherLastMessage("another message is the last one");
      throw permissionFault(error, `publish on ${subject}`);
    }
  }

  /** Place of the last message of a cell in the log stream; 0 if there is none. Somebody may have given the stream other subjects, too. */
  async lastLogSequence(): Promise<number> {
    return (await this.lastMessage(LOG_SUBJECTS))?.streamSequence ?? 0;
  }

  /** The messages of all cells from this place in the log stream on, in order. Ends when `signal` is aborted. @throws Error when the connection is lost */
  async *readLog(fromSequence: number, signal: AbortSignal): AsyncGenerator<LogMessage, void> {
    const consumer = await jetstream(this.#connection, { timeout: ANSWER_MS }).consumers.get(LOG_STREAM, {
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: Math.max(1, fromSequence),
      filter_subjects: LOG_SUBJECTS,
    });
    const messages = await consumer.consume({ max_bytes: READ_AHEAD_BYTES });
    const close = (): void => void messages.close();
    signal.addEventListener("abort", close, { once: true });
    void this.#connection.closed().then(close);
    try {
      if (signal.aborted) return;
      for await (const { subject, seq, headers: header, data, timestampNanos } of messages) {
        const streamTimeUs = Number(timestampNanos / 1000n);
        const named = { subject, header: (name: string) => header?.get(name) ?? "", bytes: data };
        yield { ...named, streamSequence: seq, timeMs: Math.floor(streamTimeUs / 1000), streamTimeUs };
      }
    } finally {
      signal.removeEventListener("abort", close);
      await messages.close();
    }
    if (!signal.aborted) throw new Error("the connection was lost");
  }

  /** The server has gone, or does not answer pings any more. */
  get isClosed(): boolean {
    return this.#connection.isClosed();
  }

  #manager(): Promise<JetStreamManager> {
    this.#managing ??= jetstreamManager(this.#connection, { timeout: ANSWER_MS, checkAPI: false });
    return this.#managing;
  }

  async close(): Promise<void> {
    await this.#connection.close().catch(() => {});
  }
}

/** The last message of some subjects that a shipper has sent. */
export interface LastSent {
  /** Null: there is none. */
  sent: { message: StoredMessage; fields: MessageFields } | null;
  /** Place of the last message of these subjects, whoever sent it; 0: there is none. */
  streamSequence: number;
  /** That place, if the message there is damaged, or if no shipper sent it; else null. */
  foreign: number | null;
}

/** Passes over what is damaged or foreign: it says nothing about who ships. */
export async function lastSent(
  plant: Pick<PlantClient, "lastMessage" | "previousMessage">,
  subjects: string,
): Promise<LastSent> {
  let message = await plant.lastMessage(subjects);
  const streamSequence = message?.streamSequence ?? 0;
  while (message !== null) {
    const fields = decodeFields(message.header, message.bytes);
    const foreign = message.streamSequence === streamSequence ? null : streamSequence;
    if (fields !== null) return { sent: { message, fields }, streamSequence, foreign };
    message = await plant.previousMessage(subjects, message.streamSequence);
  }
  return { sent: null, streamSequence, foreign: streamSequence === 0 ? null : streamSequence };
}

/** Why a server with this information cannot be used, as the end of a sentence; null if it can. */
export function serverFault(info: { version?: string; max_payload?: number }): string | null {
  const { version = "", max_payload: payload = 0 } = info;
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major < LEAST_VERSION[0] || (major === LEAST_VERSION[0] && minor < LEAST_VERSION[1])) {
    return `has version ${version || "unknown"}: 2.12 or newer is needed`;
  }
  if (payload >= LEAST_PAYLOAD_BYTES) return null;
  return `takes messages of at most ${payload} bytes: set its max_payload to at least ${LEAST_PAYLOAD_BYTES}`;
}

function connectFault(error: unknown, servers: readonly string[]): Error {
  const reason = reasonOf(error);
  const at = servers.join(",");
  if (REFUSED.test(reason)) return new PlantRefusal(`the server at ${at} refuses the credentials (${reason})`);
  return new Error(`no server answers at ${at}: ${reason}`);
}

/** The error, or one that says that this user has no right to do it, or that no JetStream answers. */
function permissionFault(error: unknown, what: string): Error {
  const reason = reasonOf(error);
  // A leaf node has none of its own: that of the plant answers through it.
  if (NO_JETSTREAM.test(reason)) {
    return new PlantRefusal(
      "the NATS server has no JetStream: add a jetstream section to its configuration, or, if it is a leaf node, look at its connection",
    );
  }
  if (REFUSED.test(reason))
    return new PlantRefusal(`this user may not ${what}: see the permissions in the server's configuration`);
  return error instanceof Error ? error : new Error(reason);
}

/** The message, and that of what caused it: clients wrap the system's error. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : reasonOf(error.cause);
  const own = error.message || error.name;
  return (cause === "" || own.includes(cause) ? own : `${own}: ${cause}`).replaceAll("\n", " ");
}

function codeOf(error: unknown): number | undefined {
  const { code } = error as { code?: unknown };
  return typeof code === "number" ? code : undefined;
}
