import type { Test } from "tap";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { frameBegin, frameLines, LINE_BYTES, nextId, seriesAppend } from "../link/link-messages.js";
import { ServiceProcess } from "../process/service-process.js";
import { until } from "../until.js";
import { type OpenPage, openPage, startBrowser } from "./console-browser.js";

export const PROGRAM = "01900000-0000-7000-8000-000000000001";
export const PROGRAM_NAME = "Housing top";
const LINES = 200;
const SAMPLES = 100;
const CHECKS_A_MESSAGE = 5_000;

export interface PlayedRun {
  serialNumber?: string | null;
  programId?: string;
  checks?: readonly object[];
  /** @param frameId of the frame, with captures */
  defects?: (frameId: string) => readonly object[];
  /** With a frame in step 1 and a series in step 2. */
  withCaptures?: boolean;
  /** The value of every sample of the series. Default: a sine. */
  sample?: number;
  end?: "finish" | "fail" | "cancel" | "none";
  message?: string;
  metadata?: object;
  events?: readonly { event_type: string; data: object }[];
}

export const check = (name: string, status: string, value: number, nominal = 10, threshold = 0.05) => ({
  ...{ name, status, value, nominal, delta: value - nominal, threshold, canonical_units: "mm" },
});

/** A browser, a service, and a cell whose results the pages show. @param expected as for `openPage` */
export async function startConsole(t: Test, expected: readonly RegExp[] = [], more: readonly string[] = []) {
  const browser = await startBrowser(t, more);
  const { service, cell } = await ConsoleCell.startFor(t);
  const open: OpenPage = (t, path, options) =>
    openPage(t, browser, `http://127.0.0.1:${service.port}${path}`, options, expected);
  return { browser, service, cell, open };
}

/** A cell that makes what a test wants to see on a page. */
export class ConsoleCell {
  readonly #producer: ProducerClient;
  readonly #port: number;

  private constructor(service: ServiceProcess) {
    this.#port = service.port;
    this.#producer = new ProducerClient({ address: { path: service.cellSocketPath }, producer: "console-cell" });
  }

  /** With a service of its own. */
  static async startFor(t: Test): Promise<{ service: ServiceProcess; cell: ConsoleCell }> {
    const service = await ServiceProcess.startFor(t);
    return { service, cell: await ConsoleCell.start(t, service) };
  }

  /** Connects, and declares a program of three steps. */
  static async start(t: Test, service: ServiceProcess): Promise<ConsoleCell> {
    const cell = new ConsoleCell(service);
    t.teardown(() => cell.close());
    await cell.#producer.welcomed();
    const steps = ["Scan face", "Sweep", "Park"].map((name, at) => ({
      ...{ type: ["capture_frame", "cl_sweep", "move_robot"][at], name, params: { speed: at } },
    }));
    await cell.say("program.put", { program: { id: PROGRAM, name: PROGRAM_NAME, status: "active", steps } });
    return cell;
  }

  /** Sends one message, and waits until it is durable. */
  say(type: string, fields: object, payload?: Uint8Array): Promise<void> {
    return this.#producer.deliver({ type, ...fields }, payload);
  }

  /** Declares another program. @returns its id */
  async putProgram(name: string, steps: readonly object[] = [{ type: "wait", name: "wait" }]): Promise<string> {
    const id = nextId();
    await this.say("program.put", { program: { id, name, status: "active", steps } });
    return id;
  }

  /** Makes a run. Messages without a capture go out one after the other, and are acknowledged together. @returns its id */
  async play(run: PlayedRun): Promise<string> {
    const { checks = [], end = "finish" } = run;
    const id = this.#producer.nextRunId();
    const program_id = run.programId ?? PROGRAM;
    const answers: Promise<void>[] = [];
    const say = (type: string, fields: object): void => void answers.push(this.say(type, fields));
    const metadata = run.metadata ?? null;
    say("run.create", { id, program_id, serial_number: run.serialNumber ?? null, metadata });
    say("run.start", { id });
    say("step.start", { run_id: id, index: 1 });
    const frameId = run.withCaptures ? await this.#capture(id, run.sample) : "";
    const defects = run.defects?.(frameId) ?? [];
    for (const event of run.events ?? []) say("event.add", { run_id: id, ...event });
    if (checks.length + defects.length > 0) {
      // A message has a megabyte at most.
      for (let from = 0; from === 0 || from < checks.length; from += CHECKS_A_MESSAGE) {
        const job = nextId();
        say("job.start", { run_id: id, id: job, name: "inspector" });
        const some = { checks: checks.slice(from, from + CHECKS_A_MESSAGE), defects: from === 0 ? defects : [] };
        say("job.finish", { run_id: id, id: job, status: "completed", ...some });
      }
    }
    if (end === "finish") say("run.finish", { id, summary: run.message ?? null });
    if (end === "fail") say("run.fail", { id, error_message: run.message ?? "the robot stopped" });
    if (end === "cancel") say("run.cancel", { id });
    await Promise.all(answers);
    if (end !== "none") await this.#untilEnded(id);
    return id;
  }

  /** @returns the frame's id */
  async #capture(runId: string, sample?: number): Promise<string> {
    const frame = nextId();
    await this.say("frame.begin", { ...frameBegin(frame, runId, 1, LINES) });
    const bytes = Uint8Array.from({ length: LINES * LINE_BYTES }, (_, at) => (at * 31) % 251);
    await this.say("frame.lines", frameLines(frame, 0, LINES), bytes);
    await this.say("frame.end", { id: frame });
    await this.say("step.finish", { run_id: runId, index: 1, status: "completed", result: { frame_id: frame } });
    await this.say("step.start", { run_id: runId, index: 2 });
    const values = Float32Array.from({ length: 2 * SAMPLES }, (_, at) => sample ?? Math.sin(at / 9));
    await this.say("series.append", seriesAppend(runId, 2), new Uint8Array(values.buffer));
    await this.say("step.finish", { run_id: runId, index: 2, status: "completed" });
    return frame;
  }

  /** The view comes after the acknowledgement: until then there may be no such run. */
  async #untilEnded(id: string): Promise<void> {
    await until(`the end of run ${id}`, async () => {
      const response = await fetch(`http://127.0.0.1:${this.#port}/runs/${id}`);
      const run = (await response.json()) as { completed_at?: string | null };
      if (!response.ok && response.status !== 404) throw new Error(`GET /runs/${id}: ${response.status}`);
      return response.ok && run.completed_at !== null;
    });
  }

  async get<Shape>(path: string): Promise<Shape> {
    return (await this.#ask("GET", path)) as Shape;
  }

  async post<Shape>(path: string, body?: object): Promise<Shape> {
    return (await this.#ask("POST", path, body)) as Shape;
  }

  async patch<Shape>(path: string, body: object): Promise<Shape> {
    return (await this.#ask("PATCH", path, body)) as Shape;
  }

  async #ask(method: string, path: string, body?: object): Promise<unknown> {
    const headers = { "Content-Type": "application/json" };
    const response = await fetch(`http://127.0.0.1:${this.#port}${path}`, {
      ...{ method, headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.json();
  }

  close(): Promise<void> {
    return this.#producer.close();
  }
}
