import { type ChildProcess, spawn } from "node:child_process";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { replaceFile } from "../../../storage/disk/whole-files.js";
import { UsageError } from "../../commands/resolve-options.js";

const CONFIGURATION = "nats.conf";
const NOT_THERE =
  "nats-server is not in the PATH: install it (`apt install nats-server`, `brew install nats-server`, or " +
  "https://github.com/nats-io/nats-server/releases), or name a server of yours with --nats nats://host:4222";

export interface NatsProcessOptions {
  /** Absolute path of the folder for what the server holds; it must be there. */
  directory: string;
  /** In a process group of its own: a Ctrl-C in the terminal does not reach it. */
  detached: boolean;
  /** Called at once, so that the process can be ended while its start is still awaited. */
  onStarted(child: ChildProcess): void;
}

/**
 * Starts the nats-server of the PATH with JetStream, on a free port of this machine.
 * @throws UsageError if there is none, or if it ends at once
 */
export async function startNats({
  directory,
  detached,
  onStarted,
}: NatsProcessOptions): Promise<{ child: ChildProcess; url: string }> {
  const jetstream = `jetstream { store_dir: ${JSON.stringify(directory)}, sync_interval: always }`;
  const text = `listen: "127.0.0.1:-1"\n${jetstream}\n`;
  await replaceFile(nodeFileSystem, directory, CONFIGURATION, Buffer.from(text));
  const child = spawn("nats-server", ["-c", `${directory}/${CONFIGURATION}`], {
    detached,
    stdio: ["ignore", "ignore", "pipe"],
  });
  onStarted(child);
  return new Promise((resolve, reject) => {
    let said = "";
    child.once("error", (error: NodeJS.ErrnoException) => {
      reject(new UsageError(error.code === "ENOENT" ? NOT_THERE : `nats-server cannot be started: ${error.message}`));
    });
    child.once("exit", () => reject(new UsageError(`nats-server did not start: ${lastLine(said)}`)));
    child.stderr.on("data", (chunk: Buffer) => {
      // Later lines are read too, so that the server never waits for us.
      if (said.includes("Server is ready")) return;
      said += chunk;
      const address = /Listening for client connections on (127\.0\.0\.1:\d+)/.exec(said)?.[1];
      if (address !== undefined && said.includes("Server is ready")) resolve({ child, url: `nats://${address}` });
    });
  });
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
