import { Agent, request } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import type { ServiceProcess } from "../process/service-process.js";
import { until } from "../until.js";
import { type Receiver, startReceiver } from "../webhooks/receiver.js";
import { frameBegin, frameLines, LINE_BYTES, nextId, PROGRAM_ID, programPut } from "./link-messages.js";

const RUN_EVERY_MS = 250;
const READ_EVERY_MS = 25;
const WRITE_EVERY_MS = 500;
/** Programs that make a list of some 20 MB, which only the hostile ask for. */
const LARGE_PROGRAMS = 64;
const PROGRAM_NUMBERS = 40_000;
const CHECKS = 5;
const CAPTURE_EVERY = 4;
const LINES = 200;
/** Connections of the reader, as a dashboard keeps them. */
const READER_CONNECTIONS = 8;
/** A read that takes longer counts as failed. */
const READ_DEADLINE_MS = 10_000;
/** Node's agent obeys `Keep-Alive: timeout=5` only if it has a timeout too. Else it also uses connections that the service is just closing. */
const AGENT_OPTIONS = { keepAlive: true, maxSockets: READER_CONNECTIONS, timeout: READ_DEADLINE_MS };

interface HonestAnswer {
  status: number;
  body: Buffer;
}

/** A program's producer, a dashboard that reads, and a receiver of events: what a cell needs while others do harm. */
export class HonestCell {
  readonly #service: ServiceProcess;
  readonly #producer: ProducerClient;
  readonly #agent = new Agent(AGENT_OPTIONS);
  #receiver: Receiver | undefined;
  #isOver = false;
  #running: Promise<unknown> | undefined;
  #webhookId = "";
  /** Runs of which every message was acknowledged, in order. */
  readonly acknowledgedRuns: string[] = [];
  /** From the time at which a read was due to its whole answer. */
  readonly readMs: number[] = [];
  /** From a message's sending to its acknowledgement. */
  readonly acknowledgementMs: number[] = [];
  readonly faults: string[] = [];

  constructor(service: ServiceProcess) {
    this.#service = service;
    this.#producer = new ProducerClient({ address: { path: service.cellSocketPath }, producer: "honest" });
  }

  /** Puts the program and subscribes the receiver. */
  async prepare(): Promise<void> {
    this.#receiver = await startReceiver();
    await this.#producer.deliver(programPut());
    const numbers = Array.from({ length: PROGRAM_NUMBERS }, (_, at) => at);
    const puts = Array.from({ length: LARGE_PROGRAMS }, () => programPut(nextId()));
    const large = puts.map(({ type, program }) => ({ type, program: { ...program, metadata: { numbers } } }));
    await Promise.all(large.map((put) => this.#producer.deliver(put)));
    const { status, body } = await this.ask("POST", "/webhooks", {
      ...{ name: "honest", url: this.#receiver.url, subscribed_events: ["ProgramCompleted"] },
    });
    if (status !== 201) throw new Error(`POST /webhooks: ${status}`);
    this.#webhookId = JSON.parse(body.toString()).id;
  }

  /** Paths of a run's large documents, of the delivery of its event, and of a list of large programs. */
  async largePaths(runId: string): Promise<string[]> {
    const ofWebhook = `/webhooks/${this.#webhookId}/deliveries`;
    let deliveryId: string | undefined;
    await until("a delivery", async () => {
      deliveryId = JSON.parse((await this.ask("GET", `${ofWebhook}?limit=1`)).body.toString())[0]?.id;
      return deliveryId !== undefined;
    });
    const run = `/runs/${runId}`;
    return [`${run}/quality-report`, run, `/webhook-deliveries/${deliveryId}`, ofWebhook, "/programs?limit=1000"];
  }

  /** Plays runs, reads and writes at their pace, until `stop`. */
  begin(): void {
    this.#running = Promise.all([
      this.#atPace(RUN_EVERY_MS, () => this.playRun()),
      this.#atPace(READ_EVERY_MS, (at) => this.#read(at)),
      this.#atPace(WRITE_EVERY_MS, () => this.#write()),
    ]);
  }

  /** Resolves when all that was begun has ended. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  async close(): Promise<void> {
    this.#agent.destroy();
    this.#producer.destroy();
    await this.#receiver?.close();
  }

  /** Ids of the runs whose end the receiver was told of. */
  get announcedRuns(): ReadonlySet<string> {
    const runIds = (this.#receiver?.requests ?? []).map(
      ({ body }) => JSON.parse(body.toString()).data.run_id as string,
    );
    return new Set(runIds);
  }

  /** A run with checks and, now and then, a capture. */
  async playRun(checks = CHECKS): Promise<string> {
    const id = nextId();
    const messages: [object, Uint8Array?][] = [
      [{ type: "run.create", id, program_id: PROGRAM_ID, serial_number: `SN-${this.acknowledgedRuns.length}` }],
      [{ type: "run.start", id }],
      [{ type: "step.start", run_id: id, index: 1 }],
    ];
    if (this.acknowledgedRuns.length % CAPTURE_EVERY === 0) {
      const frame = nextId();
      messages.push([frameBegin(frame, id)], [frameLines(frame, 0, LINES), new Uint8Array(LINES * LINE_BYTES).fill(9)]);
      messages.push([{ type: "frame.end", id: frame }]);
    }
    for (let at = 0; at < checks; at++) {
      const message = "m".repeat(checks > CHECKS ? 300 : 10);
      messages.push([
        { type: "check.add", run_id: id, check: { name: `check ${at}`, status: "passed", value: at, message } },
      ]);
    }
    messages.push([{ type: "step.finish", run_id: id, index: 1, status: "completed" }], [{ type: "run.finish", id }]);
    const answers = messages.map(([body, payload]) => {
      const sentMs = performance.now();
      return this.#producer.deliver(body, payload).then(() => this.acknowledgementMs.push(performance.now() - sentMs));
    });
    await Promise.all(answers);
    this.acknowledgedRuns.push(id);
    return id;
  }

  async ask(method: string, path: string, body?: object): Promise<HonestAnswer> {
    return new Promise((resolve, reject) => {
      const text = body === undefined ? undefined : JSON.stringify(body);
      const headers =
        text === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
      const target = { port: this.#service.port, host: "127.0.0.1", method, path, headers, agent: this.#agent };
      const sent = request({ ...target, timeout: READ_DEADLINE_MS }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks) }));
      });
      sent.on("timeout", () => sent.destroy(new Error(`no answer within ${READ_DEADLINE_MS} ms`)));
      sent.on("error", (error) => {
        const connection = sent.reusedSocket ? "a kept connection" : "a new connection";
        reject(new Error(`${method} ${path} on ${connection}: ${error.message}`));
      });
      sent.end(text);
    });
  }

  async #read(dueMs: number): Promise<void> {
    // One of some seconds ago: what is acknowledged is stored, and the front shows it as soon as it has its turn.
    const newest = this.acknowledgedRuns.at(-20) ?? "";
    const paths = ["/health", "/runs?limit=20", `/runs/${newest}`, `/runs/${newest}/quality-report`];
    const path = newest === "" ? "/health" : (paths[this.readMs.length % paths.length] as string);
    const { status } = await this.ask("GET", path);
    this.readMs.push(performance.now() - dueMs);
    if (status !== 200) this.faults.push(`GET ${path}: ${status}`);
  }

  async #write(): Promise<void> {
    const { status } = await this.ask("PATCH", `/webhooks/${this.#webhookId}`, { name: "honest" });
    if (status !== 200) this.faults.push(`PATCH /webhooks: ${status}`);
  }

  /** Begins one each time it is due, whether or not those before have ended, and waits for all. */
  async #atPace(everyMs: number, begin: (dueMs: number) => Promise<unknown>): Promise<void> {
    const begun: Promise<unknown>[] = [];
    for (let dueMs = performance.now(); !this.#isOver; dueMs += everyMs) {
      await pause(Math.max(0, dueMs - performance.now()));
      begun.push(begin(dueMs).catch((error: Error) => this.faults.push(error.message)));
    }
    await Promise.all(begun);
  }
}
