import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import t, { type Test } from "tap";
import { nextId, PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { runCommand } from "../../helpers/process/service-process.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

const MAIN = "dist/http/main.js";

/** A store with a run that has ended. */
async function madeStore(t: Test): Promise<string> {
  const data = join(temporaryDirectory(t), "data");
  const recorder = await RecorderHarness.start(t, data);
  const raw = await recorder.connect("cell");
  const runId = nextId();
  await raw.accept(programPut());
  await raw.accept({ type: "run.create", id: runId, program_id: PROGRAM_ID });
  await raw.accept({ type: "run.cancel", id: runId });
  await recorder.stop();
  return data;
}

/** Runs the command with a stdout that takes nothing: that of a full disk, or of a reader that has gone. */
async function runWithout(stdout: "full" | "gone", args: readonly string[]) {
  const full = openSync("/dev/full", "w");
  const child = spawn(process.execPath, [MAIN, ...args], {
    stdio: ["ignore", stdout === "full" ? full : "pipe", "pipe"],
  });
  closeSync(full);
  child.stdout?.destroy();
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  const stderr = await text(child.stderr as NodeJS.ReadableStream);
  return { code: await ended, stderr };
}

t.test("a command whose output is lost does not exit 0, and says so in a line", async (t) => {
  const data = await madeStore(t);
  const folder = temporaryDirectory(t);
  const keys = join(folder, "keys.json");
  await runCommand(["keys", "add", "--file", keys]);
  const { stdout: before } = await runCommand(["keys", "list", "--file", keys]);
  const add = ["keys", "add", "--file", keys];
  // All commands write by the same lines of code. The outputs of these differ most.
  for (const args of [["inspect", "--data", data], add, ["--help"]]) {
    const { code, stderr } = await runWithout("full", args);
    t.equal(code, 1, args.join(" "));
    t.match(stderr, /^inspection-service: stdout cannot be written \(ENOSPC\)[^\n]*\n$/, args.join(" "));
  }
  for (const args of [["check", "--data", data, "--json"], ["inspect", "--data", data], add, ["--help"]]) {
    const { code, stderr } = await runWithout("gone", args);
    t.equal(code, 1, `${args.join(" ")}, of which nobody reads`);
    t.equal(stderr, "");
  }
  const { stdout: after } = await runCommand(["keys", "list", "--file", keys]);
  t.equal(after, before, "a key that nobody has seen is taken back");
});

t.test(
  "serve goes on when stdout takes nothing; where it may take it later, the end says that it did not",
  async (t) => {
    for (const stdout of ["full", "gone"] as const) {
      const full = openSync("/dev/full", "w");
      const args = [MAIN, "serve", "--data", join(temporaryDirectory(t), "data"), "--port", "0"];
      const child = spawn(process.execPath, args, { stdio: ["ignore", stdout === "full" ? full : "pipe", "pipe"] });
      closeSync(full);
      child.stdout?.destroy();
      t.teardown(() => child.kill("SIGKILL"));
      const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
      let stderr = "";
      const url = new Promise<string>((resolve) => {
        child.stderr?.on("data", (chunk: Buffer) => {
          stderr += chunk;
          const served = stderr.split("\n").find((line) => line.includes('"HTTP is served"') && line.endsWith("}"));
          if (served !== undefined) resolve((JSON.parse(served) as { url: string }).url);
        });
      });
      t.equal((await fetch(`${await url}/livez`)).status, 200, "the log says where it listens");
      child.kill("SIGTERM");
      t.equal(await ended, stdout === "full" ? 1 : 0, stdout);
      const said = /^inspection-service: stdout did not accept all lines: ENOSPC$/m;
      t.equal(said.test(stderr), stdout === "full");
    }
  },
);
