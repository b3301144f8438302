import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import type { Test } from "tap";
import { LOG_STREAM } from "../../../workers/plant/log-message.js";
import { PlantClient, type StoredMessage } from "../../../workers/plant/plant-client.js";
import { temporaryDirectory } from "../recorder/recorder-harness.js";
import { until } from "../until.js";

/** A NATS server's binary; `.ci/run` fetches one (.ci/nats-server.sh). */
export const SERVER = process.env.TEST_NATS_SERVER ?? "";

/** For the option `skip` of a test: false, or why there is no server. */
export const noNatsServer = SERVER === "" && "TEST_NATS_SERVER names no nats-server (.ci/nats-server.sh fetches one)";

/** A real NATS server with JetStream, which syncs every message. It keeps its port and its store over `kill` and `start`. */
export class NatsServer {
  readonly #directory: string;
  readonly #settings: string;
  #port = -1;
  #process: ChildProcess | undefined;

  private constructor(directory: string, settings: string) {
    this.#directory = directory;
    this.#settings = settings;
  }

  /** @param settings further lines of its configuration */
  static async startFor(t: Test, settings = ""): Promise<NatsServer> {
    const server = new NatsServer(temporaryDirectory(t), settings);
    t.teardown(() => server.kill());
    await server.start();
    return server;
  }

  /** With the stream for the logs of cells. */
  static async startWithLog(t: Test): Promise<NatsServer> {
    const server = await NatsServer.startFor(t);
    await server.with((client) => client.createLogStream(1));
    return server;
  }

  /** As its settings name it. */
  get name(): string {
    return /server_name: "([^"]+)"/.exec(this.#settings)?.[1] ?? "";
  }

  get url(): string {
    return `nats://127.0.0.1:${this.#port}`;
  }

  async start(): Promise<void> {
    const ports = this.#directory;
    const configuration = join(this.#directory, "nats.conf");
    const text = [
      `listen: "127.0.0.1:${this.#port}"`,
      `ports_file_dir: ${JSON.stringify(ports)}`,
      `jetstream { store_dir: ${JSON.stringify(join(this.#directory, "store"))}, sync_interval: always }`,
      this.#settings,
    ];
    writeFileSync(configuration, `${text.join("\n")}\n`);
    for (const name of portFiles(ports)) rmSync(join(ports, name));
    const child = spawn(SERVER, ["-c", configuration, "-l", join(this.#directory, "nats.log")], { stdio: "ignore" });
    this.#process = child;
    let written = "";
    // The server makes its file of ports first, and writes it a moment later.
    await until("the ports of the NATS server", () => {
      if (child.exitCode !== null) throw new Error(readFileSync(join(this.#directory, "nats.log"), "utf8"));
      for (const name of portFiles(ports)) written = readFileSync(join(ports, name), "utf8").trimEnd();
      return written.endsWith("}");
    });
    this.#port = Number(new URL(JSON.parse(written).nats[0]).port);
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  client(): Promise<PlantClient> {
    return PlantClient.connect({ servers: [this.url], credentials: null, caPath: null });
  }

  /** Uses a client and closes it. */
  async with<T>(use: (client: PlantClient) => Promise<T>): Promise<T> {
    const client = await this.client();
    try {
      return await use(client);
    } finally {
      await client.close();
    }
  }

  /** Gives the log stream another subject, too, and a message of it as its last one. */
  async addLogSubject(subject: string): Promise<void> {
    const connection = await connect({ servers: this.url });
    try {
      const manager = await jetstreamManager(connection);
      const { config } = await manager.streams.info(LOG_STREAM);
      await manager.streams.update(LOG_STREAM, { subjects: [...config.subjects, subject] });
      await jetstream(connection).publish(subject, "of nobody here");
    } finally {
      await connection.close();
    }
  }

  /** All messages of a stream, in order. */
  async messages(stream = LOG_STREAM): Promise<StoredMessage[]> {
    const connection = await connect({ servers: this.url });
    try {
      const manager = await jetstreamManager(connection);
      const { state } = await manager.streams.info(stream);
      const messages: StoredMessage[] = [];
      for (let seq = state.first_seq; seq <= state.last_seq && state.messages > 0; seq++) {
        const found = await manager.streams.getMessage(stream, { seq });
        if (found === null) throw new Error(`message ${seq} is not there`);
        const { subject, header, data, time } = found;
        const get = (name: string) => header.get(name);
        messages.push({ subject, streamSequence: seq, timeMs: time.getTime(), header: get, bytes: data });
      }
      return messages;
    } finally {
      await connection.close();
    }
  }
}

function portFiles(directory: string): string[] {
  return readdirSync(directory).filter((name) => name.endsWith(".ports"));
}
