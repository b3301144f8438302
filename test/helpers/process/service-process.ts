import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Test } from "tap";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { repeatedKeys } from "./log-lines.js";

const MAIN = "dist/http/main.js";

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface ProcessOptions {
  /** Command and options; a data directory (not for `listen`), and port 0, are added where they are not given. */
  args?: readonly string[];
  environment?: Readonly<Record<string, string>>;
  /** Where it runs; default: where the tests do. */
  cwd?: string;
  /** Compiled script to run in place of the service's own. */
  script?: string;
  /** Default: a temporary folder of its own, removed with `dispose`. */
  dataDirectory?: string;
  /** The Node binary. Default: that of the tests. */
  binary?: string;
  /** Descriptors that it may have open; default: TEST_DESCRIPTOR_LIMIT, or 256. */
  descriptorLimit?: string;
  /** A command that starts the process, such as prlimit with its options. */
  wrap?: readonly string[];
  /** An open file in place of the pipe that `stderr` comes from. */
  stderrFd?: number;
}

/** What tests send as Host: names of no machine. */
const ALLOWED_HOSTS = "cell,x";

/** The environment without the service's own variables, of which the developer may have some; TEST_FRONT chooses the front. */
function cleanEnvironment(extra: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("INSPECTION_"));
  const front = process.env.TEST_FRONT;
  return {
    ...Object.fromEntries(inherited),
    ...{ INSPECTION_ALLOWED_HOST: ALLOWED_HOSTS },
    ...(front !== undefined && { INSPECTION_FRONT: front }),
    ...extra,
  };
}

/** So few that whatever a test does is also shown to need no more. */
const DESCRIPTOR_LIMIT = process.env.TEST_DESCRIPTOR_LIMIT ?? "256";
const HAS_PRLIMIT = spawnSync("prlimit", ["--version"]).status === 0;

/** The program by its arguments, with no more descriptors than this, where the limit can be set. */
function limited(binary: string, args: readonly string[], limit = DESCRIPTOR_LIMIT): [string, string[]] {
  return HAS_PRLIMIT ? ["prlimit", [`--nofile=${limit}`, binary, ...args]] : [binary, [...args]];
}

/** Runs the command to its end. */
export async function runCommand(
  args: readonly string[],
  environment?: Record<string, string>,
  binary = process.execPath,
  cwd = process.cwd(),
): Promise<Ended> {
  const child = spawn(...limited(binary, [resolve(MAIN), ...args]), {
    cwd,
    env: cleanEnvironment(environment),
    stdio: ["ignore", "pipe", "pipe"],
  });
  return new Output(child).ended;
}

class Output {
  stdout = "";
  stderr = "";
  readonly ended: Promise<Ended>;
  /** Called with each chunk, and at the end. */
  onChange: () => void = () => {};

  constructor(child: ChildProcess) {
    child.stdout?.on("data", (chunk: Buffer) => {
      this.stdout += chunk;
      this.onChange();
    });
    child.stderr?.on("data", (chunk: Buffer) => {
      this.stderr += chunk;
      this.onChange();
    });
    this.ended = new Promise((resolve) => {
      child.once("close", (code, signal) => {
        resolve({ code, signal, stdout: this.stdout, stderr: this.stderr });
        this.onChange();
      });
    });
  }
}

/** The real service as a child process, on port 0 and a data directory of its own. */
export class ServiceProcess {
  readonly dataDirectory: string;
  readonly #child: ChildProcess;
  readonly #output: Output;
  readonly #ownsDirectory: boolean;
  #ended = false;
  #isJudged = false;
  #port = 0;

  private constructor(options: ProcessOptions) {
    this.#ownsDirectory = options.dataDirectory === undefined;
    this.dataDirectory = options.dataDirectory ?? mkdtempSync(join(tmpdir(), "inspection-service-"));
    const args = [...(options.args ?? ["serve"])];
    if (!args.includes("--data") && args[0] !== "listen") args.push("--data", this.dataDirectory);
    if (!args.includes("--port")) args.push("--port", "0");
    const program = [options.script ?? resolve(MAIN), ...args];
    const [binary, parts] = limited(options.binary ?? process.execPath, program, options.descriptorLimit);
    const command = [...(options.wrap ?? []), binary, ...parts];
    this.#child = spawn(command[0] as string, command.slice(1), {
      ...{ cwd: options.cwd, env: cleanEnvironment(options.environment) },
      stdio: ["ignore", "pipe", options.stderrFd ?? "pipe"],
    });
    this.#output = new Output(this.#child);
    // A test that is cut off by its time limit must not leave its service behind.
    const killed = () => this.#child.kill("SIGKILL");
    process.once("exit", killed);
    void this.#output.ended.then(() => {
      process.off("exit", killed);
      this.#ended = true;
    });
  }

  /** Resolves when it answers; rejects with what it printed when it ends before. */
  static async start(options: ProcessOptions = {}): Promise<ServiceProcess> {
    const service = new ServiceProcess(options);
    // Not at a line's beginning: what V8 traces goes through a buffer of its own, which may end within a line where ours comes.
    const line = await service.untilStdout(/listening on https?:\/\/\S*:(\d+)(?: \(front: .*\))?$/m);
    service.#port = Number(line[1]);
    return service;
  }

  /** As `start`; the end of the test disposes of it. */
  static async startFor(
    t: { teardown(undo: () => unknown): unknown },
    options: ProcessOptions = {},
  ): Promise<ServiceProcess> {
    const service = await ServiceProcess.start(options);
    t.teardown(() => service.dispose());
    return service;
  }

  /** A producer of its cell: a refusal fails the test, whose end closes it. */
  producerFor(t: Test): ProducerClient {
    const onRefused = (refusal: unknown) => t.fail(JSON.stringify(refusal));
    const producer = new ProducerClient({ address: { path: this.cellSocketPath }, producer: "controller", onRefused });
    t.teardown(() => producer.close());
    return producer;
  }

  get port(): number {
    return this.#port;
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  get cellSocketPath(): string {
    return join(this.dataDirectory, "cell.sock");
  }

  get stdout(): string {
    return this.#output.stdout;
  }

  get stderr(): string {
    return this.#output.stderr;
  }

  /** Waits until stdout matches; rejects with what was printed when the process ends before. */
  untilStdout(pattern: RegExp): Promise<RegExpExecArray> {
    return this.#untilPrinted("stdout", pattern);
  }

  /** As `untilStdout`, of stderr. */
  untilStderr(pattern: RegExp): Promise<RegExpExecArray> {
    return this.#untilPrinted("stderr", pattern);
  }

  #untilPrinted(where: "stdout" | "stderr", pattern: RegExp): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const match = pattern.exec(this.#output[where]);
        if (match !== null) resolve(match);
        else if (this.#ended) {
          reject(new Error(`it ended before ${pattern}:\n${this.#output.stdout}\n${this.#output.stderr}`));
        }
      };
      this.#output.onChange = look;
      void this.#output.ended.then(look);
      look();
    });
  }

  /** Sends the signal and waits for the end. */
  async end(signal: NodeJS.Signals = "SIGTERM"): Promise<Ended> {
    if (!this.#ended) this.#child.kill(signal);
    const ended = await this.#output.ended;
    this.#isJudged = true;
    if (ended.signal !== null && ended.signal !== signal && ended.signal !== "SIGKILL") {
      throw new Error(`the service was ended by ${ended.signal}: ${ended.stderr.slice(-2_000)}`);
    }
    // Checks every log line of every test's service: a parser would lose one of two equal keys.
    const repeated = repeatedKeys(ended.stderr);
    if (repeated.length > 0) throw new Error(`a log line has a key twice: ${repeated.join("\n")}`);
    return ended;
  }

  /** Ends it in any case and removes what it left behind; safe to call again. */
  async dispose(): Promise<void> {
    // What `end` has told already is not told again: what else the test has begun must be ended too.
    if (!this.#isJudged) await this.end("SIGKILL");
    if (this.#ownsDirectory) rmSync(this.dataDirectory, { recursive: true, force: true });
  }
}
