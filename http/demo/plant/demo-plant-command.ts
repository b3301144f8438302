import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { forkProgram } from "../../../workers/fork-program.js";
import { PlantClient } from "../../../workers/plant/plant-client.js";
import type { DemoPlantOptions } from "../../commands/command-options.js";
import { plantAddress } from "../../commands/plant-command.js";
import { UsageError } from "../../commands/resolve-options.js";
import { untilSignal } from "../../commands/until-signal.js";
import { standardOutput } from "../../log/standard-error.js";
import { DemoCellError } from "../demo-command.js";
import { startNats } from "./nats-process.js";

const PROGRAM = fileURLToPath(new URL("../../main.js", import.meta.url));
const CELLS = ["line1-cell1", "line1-cell2", "line2-cell1"];
const CELL_CAPTURES = "512MiB";
const PLANT_CAPTURE_BYTES = 2 * 1024 ** 3;
/** A service stops within 10 s. */
const STOP_LIMIT_MS = 15_000;

/**
 * `demo-plant`: runs a NATS server, three demo cells and a hub, each in a process of its own. A signal ends all of them.
 * @throws UsageError if there is no server, or if it cannot be used; DemoCellError if a part has ended by itself
 */
export async function demoPlant(options: DemoPlantOptions): Promise<void> {
  const stopped = untilSignal();
  let leave = (): void => {};
  const left = new Promise<void>((done) => (leave = done));
  const plant = new DemoPlant(options, standardOutput(leave));
  // A second signal ends this process at once, and nothing must stay.
  process.on("exit", () => plant.kill());
  try {
    await Promise.race([plant.start().then(() => stopped), plant.failed, stopped, left]);
  } finally {
    await plant.stop();
  }
}

class DemoPlant {
  readonly #options: DemoPlantOptions;
  readonly #say: (line: string) => void;
  /** In the order in which they are stopped: each cell ships its last records while the server still runs. */
  readonly #cells: ChildProcess[] = [];
  readonly #others: ChildProcess[] = [];
  #fail: (error: Error) => void = () => {};
  /** Rejects when a part has ended by itself. */
  readonly failed: Promise<never>;

  constructor(options: DemoPlantOptions, say: (line: string) => void) {
    this.#options = options;
    this.#say = say;
    this.failed = new Promise((_, reject) => (this.#fail = reject));
    this.failed.catch(() => {});
  }

  async start(): Promise<void> {
    const { nats, port, seed, runs } = this.#options;
    const data = resolve(this.#options.data);
    const url = nats?.join(",") ?? (await this.#startServer(`${data}/nats`));
    await makeStreams(url.split(","));
    const plant = ["--plant", url, "--log-level", "warn"];
    const hub = this.#startService("the hub", ["hub", "--data", `${data}/hub`, "--port", String(port), ...plant]);
    const cells = CELLS.map(async (cell, at) => {
      const own = ["demo", "--data", `${data}/${cell}`, "--port", "0", "--cell", cell, "--seed", String(seed + at)];
      const bounds = ["--plant-captures", "all", "--retain-bytes", CELL_CAPTURES];
      const limit = runs === null ? [] : ["--runs", String(runs)];
      const address = await this.#startService(`the cell ${cell}`, [...own, ...bounds, ...limit, ...plant]);
      this.#say(`${cell}  ${address}`);
    });
    await Promise.all(cells);
    this.#say(`open ${await hub}`);
  }

  async stop(): Promise<void> {
    this.#fail = () => {};
    await Promise.all(this.#cells.map(end));
    for (const child of this.#others.reverse()) await end(child);
  }

  kill(): void {
    for (const child of [...this.#cells, ...this.#others]) child.kill("SIGKILL");
  }

  async #startServer(directory: string): Promise<string> {
    await nodeFileSystem.makeDirectory(directory);
    const onStarted = (child: ChildProcess) => void this.#others.push(child);
    // Each cell ships its last records to it, after a Ctrl-C too.
    const { child, url } = await startNats({ directory, detached: true, onStarted });
    this.#watch("nats-server", child);
    this.#say(`nats-server  ${url}`);
    return url;
  }

  /** @returns where it listens */
  #startService(name: string, args: readonly string[]): Promise<string> {
    // In a group of its own: a Ctrl-C in the terminal reaches only this process, which stops the parts in their order.
    const child = forkProgram(PROGRAM, args, { detached: true, stdio: ["ignore", "pipe", "inherit", "ipc"] });
    (args[0] === "hub" ? this.#others : this.#cells).push(child);
    this.#watch(name, child);
    return new Promise((done) => {
      let said = "";
      child.stdout?.on("data", (chunk: Buffer) => {
        // Later lines are read too, so that the service need not drop them.
        if (said.includes("listening on")) return;
        said += chunk;
        const address = /listening on (\S+) /.exec(said)?.[1];
        if (address !== undefined) done(address);
      });
    });
  }

  #watch(name: string, child: ChildProcess): void {
    child.once("error", ({ message }) => this.#fail(new DemoCellError(`${name} cannot be started: ${message}`)));
    child.once("exit", (code, signal) => this.#fail(new DemoCellError(`${name} ended with ${signal ?? code}`)));
  }
}

/** @throws UsageError */
async function makeStreams(servers: readonly string[]): Promise<void> {
  // Credentials and an authority for --nats are given as INSPECTION_PLANT_CREDENTIALS and INSPECTION_PLANT_CA, which the parts read too.
  const { INSPECTION_PLANT_CREDENTIALS: credentials = null, INSPECTION_PLANT_CA: ca = null } = process.env;
  const address = await plantAddress({ plant: servers, "plant-credentials": credentials, "plant-ca": ca });
  let client: PlantClient | undefined;
  try {
    client = await PlantClient.connect(address as NonNullable<typeof address>);
    await client.createStreams({ replicas: 1, captureDays: null, captureBytes: PLANT_CAPTURE_BYTES });
  } catch (error) {
    throw new UsageError(`the demo's plant cannot be used: ${(error as Error).message}`);
  } finally {
    await client?.close();
  }
}

/** Asks the process to end, and kills it if it does not. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_LIMIT_MS);
  await ended.finally(() => clearTimeout(timer));
}
