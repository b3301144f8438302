import { DeliverPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, credsAuthenticator, headers, type NatsConnection } from "@nats-io/transport-node";
import { LEAST_PAYLOAD_BYTES, LOG_STREAM, LOG_SUBJECTS } from "./log-message.js";

/** How long the server may take to connect or to answer. A stopped server (SIGSTOP) is found out by this. */
const ANSWER_MS = 5_000;
const LEAST_VERSION = [2, 12] as const;
/** Messages that a hub asks for before it has taken the earlier ones. */
const READ_AHEAD_BYTES = 8 * 1024 * 1024;
/** Codes of the JetStream API. */
const WRONG_LAST_SEQUENCE = [10071, 10164];
const STREAM_NOT_FOUND = 10059;
const STREAM_NAME_IN_USE = 10058;

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
  header(name: string): string;
  bytes: Uint8Array;
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
    });
    const client = new PlantClient(connection);
    try {
      client.#requireUsable();
      return client;
    } catch (error) {
      await client.close();
      throw error;
    }
  }

  #requireUsable(): void {
    const { version = "", max_payload: payload = 0, jetstream: hasStreams } = this.#connection.info ?? {};
    const [major = 0, minor = 0] = version.split(".").map(Number);
    if (major < LEAST_VERSION[0] || (major === LEAST_VERSION[0] && minor < LEAST_VERSION[1])) {
      throw new PlantRefusal(`the NATS server has version ${version}: 2.12 or newer is needed`);
    }
    if (hasStreams !== true) throw new PlantRefusal("JetStream is not enabled on the NATS server");
    if (payload < LEAST_PAYLOAD_BYTES) {
      throw new PlantRefusal(`max_payload of the NATS server is ${payload}: at least ${LEAST_PAYLOAD_BYTES} is needed`);
    }
  }

  /** @throws PlantRefusal if the log stream is missing, or may drop messages */
  async requireLogStream(): Promise<void> {
    const manager = await this.#manager();
    const { config } = await manager.streams.info(LOG_STREAM).catch((error: unknown) => {
      if (codeOf(error) !== STREAM_NOT_FOUND) throw error;
      throw new PlantRefusal(`the stream ${LOG_STREAM} is not there: make it with \`inspection-service plant init\``);
    });
    const { max_age, max_bytes, max_msgs, max_msgs_per_subject, max_msg_size = -1, retention } = config;
    const wrong = Object.entries({ max_age, max_bytes, max_msgs, max_msgs_per_subject }).filter(
      ([, value]) => value > 0,
    );
    if (max_msg_size > 0 && max_msg_size < LEAST_PAYLOAD_BYTES) wrong.push(["max_msg_size", max_msg_size]);
    const named = wrong.map(([name, value]) => `${name} ${value}`);
    if (retention !== "limits") named.push(`retention ${retention}`);
    if (!config.subjects?.includes(LOG_SUBJECTS)) named.push(`subjects without ${LOG_SUBJECTS}`);
    if (named.length > 0) {
      throw new PlantRefusal(`the stream ${LOG_STREAM} must keep every message, but has ${named.join(", ")}`);
    }
  }

  /** Makes the log stream. @throws PlantRefusal if it is there with other settings */
  async createLogStream(replicas: number): Promise<void> {
    const manager = await this.#manager();
    const stream = {
      name: LOG_STREAM,
      subjects: [LOG_SUBJECTS],
      num_replicas: replicas,
      deny_delete: true,
      deny_purge: true,
    };
    await manager.streams.add({ ...stream, storage: "file", retention: "limits" }).catch((error: unknown) => {
      if (codeOf(error) !== STREAM_NAME_IN_USE) throw error;
      throw new PlantRefusal(`the stream ${LOG_STREAM} is there already, with other settings`);
    });
  }

  /** The last message of these subjects; null if there is none. */
  async lastMessage(subjects: string): Promise<StoredMessage | null> {
    const manager = await this.#manager();
    const message = await manager.streams.getMessage(LOG_STREAM, { last_by_subj: subjects });
    if (message === null) return null;
    const { subject, seq, header, data } = message;
    return { subject, streamSequence: seq, header: (name) => header.get(name), bytes: data };
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
    { subjects, expected }: { subjects: string; expected: number },
  ): Promise<number> {
    const header = headers();
    for (const [name, value] of Object.entries(fields)) header.set(name, value);
    const expect = { streamName: LOG_STREAM, lastSubjectSequence: expected, lastSubjectSequenceSubject: subjects };
    try {
      const options = { headers: header, expect, timeout: ANSWER_MS, retries: 0 };
      return (await jetstream(this.#connection).publish(subject, bytes, options)).seq;
    } catch (error) {
      const isOther = WRONG_LAST_SEQUENCE.includes(codeOf(error) ?? 0);
      throw isOther ? new OtherLastMessage("another message is the last one") : error;
    }
  }

  /** The last place in the log stream that has a message; 0 in an empty stream. */
  async lastLogSequence(): Promise<number> {
    const manager = await this.#manager();
    return (await manager.streams.info(LOG_STREAM)).state.last_seq;
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
        yield { ...named, streamSequence: seq, streamTimeUs };
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

  #manager() {
    return jetstreamManager(this.#connection, { timeout: ANSWER_MS, checkAPI: false });
  }

  async close(): Promise<void> {
    await this.#connection.close().catch(() => {});
  }
}

function codeOf(error: unknown): number | undefined {
  const { code } = error as { code?: unknown };
  return typeof code === "number" ? code : undefined;
}
