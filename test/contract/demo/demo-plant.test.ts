import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import t, { type Test } from "tap";
import { NatsServer, noNatsServer, SERVER } from "../../helpers/plant/nats-server.js";
import { QUICK_CELL } from "../../helpers/process/demo-results.js";
import { runCommand } from "../../helpers/process/service-process.js";
import { untilGone } from "../../helpers/process/until-gone.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { until } from "../../helpers/until.js";

const CELLS = ["line1-cell1", "line1-cell2", "line2-cell1"];

/** A folder for PATH that has these programs, and nothing else. */
function pathWith(t: Test, programs: Record<string, string>): string {
  const folder = join(temporaryDirectory(t), "bin");
  mkdirSync(folder);
  for (const [name, program] of Object.entries(programs)) symlinkSync(program, join(folder, name));
  return folder;
}

/** The processes that this one has started, theirs too. */
function descendants(pid: number): number[] {
  const listed = spawnSync("ps", ["-eo", "pid=,ppid="], { encoding: "utf8" }).stdout.trim().split("\n");
  const pairs = listed.map((line) => line.trim().split(/ +/).map(Number) as [number, number]);
  const of = (parent: number): number[] =>
    pairs.filter(([, one]) => one === parent).flatMap(([child]) => [child, ...of(child)]);
  return of(pid);
}

async function startDemoPlant(t: Test, args: readonly string[], path = process.env.PATH ?? "") {
  const data = join(temporaryDirectory(t), "plant");
  const program = [resolve("dist/http/main.js"), "demo-plant", "--data", data, "--port", "0", ...args];
  const child = spawn(process.execPath, program, {
    env: { ...process.env, ...QUICK_CELL, PATH: path },
    stdio: ["ignore", "pipe", "pipe"],
  });
  t.teardown(() => child.kill("SIGTERM"));
  const ended = once(child, "exit") as Promise<[number | null, string | null]>;
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk));
  let hasEnded = false;
  void ended.then(() => (hasEnded = true));
  while (!/^open /m.test(stdout)) {
    if (hasEnded) throw new Error(`demo-plant ended: ${stderr}`);
    await setTimeout(20);
  }
  const url = /^open (\S+)\n$/m.exec(stdout)?.[1] as string;
  return { child, ended, url, data, stdout: () => stdout, stderr: () => stderr };
}

async function untilRuns(url: string, cells: readonly string[], count: number): Promise<void> {
  const totalOf = async (cell: string) =>
    ((await (await fetch(`${url}/runs?cell=${cell}&limit=1`)).json()) as { total: number }).total;
  for (const cell of cells) await until(`${count} runs of ${cell}`, async () => (await totalOf(cell)) >= count);
}

t.test("without a server it says in one line how to get one", async (t) => {
  const prlimit = spawnSync("sh", ["-c", "command -v prlimit"], { encoding: "utf8" }).stdout.trim();
  const PATH = pathWith(t, prlimit === "" ? {} : { prlimit });
  const data = temporaryDirectory(t);
  const missing = await runCommand(["demo-plant", "--data", data], { PATH });
  t.equal(missing.code, 1);
  t.match(
    missing.stderr,
    /^inspection-service: nats-server is not in the PATH: install it .* or .*--nats nats:\/\/\S+\n$/,
  );
  const away = await runCommand(["demo-plant", "--data", data, "--nats", "nats://127.0.0.1:9"], { PATH });
  t.equal(away.code, 1);
  t.match(away.stderr, /^inspection-service: the demo's plant cannot be used: no server answers at .*\n$/);
});

t.test("three cells, one hub: runs of all, and nothing stays", { skip: noNatsServer }, async (t) => {
  const PATH = `${pathWith(t, { "nats-server": SERVER })}:${process.env.PATH}`;
  const plant = await startDemoPlant(t, ["--runs", "2"], PATH);
  const lines = plant.stdout().trim().split("\n");
  t.match(lines.at(-1), /^open http:\/\/127\.0\.0\.1:\d+$/, "the line to open is the last one");
  for (const cell of CELLS)
    t.ok(
      lines.some((line) => line.startsWith(`${cell}  http://`)),
      cell,
    );
  await untilRuns(plant.url, CELLS, 2);
  const console = await fetch(`${plant.url}/`, { headers: { Accept: "text/html" } });
  t.match(console.headers.get("content-type"), /text\/html/, "the hub has the console");
  const processes = descendants(plant.child.pid as number);
  t.ok(processes.length >= 5, `${processes.length} processes: a server, a hub, three cells, and what they start`);
  plant.child.kill("SIGINT");
  t.strictSame(await plant.ended, [0, null]);
  t.equal(plant.stderr(), "", "it ends without a complaint");
  for (const pid of processes) await untilGone(pid);
  t.comment(`${processes.length} processes are gone after Ctrl-C`);
  for (const cell of CELLS) t.match(await runCommand(["check", "--data", join(plant.data, cell)]), { code: 0 });
});

t.test("--nats takes a server that runs, and a part that dies ends all", { skip: noNatsServer }, async (t) => {
  const server = await NatsServer.startFor(t);
  const plant = await startDemoPlant(t, ["--nats", server.url, "--runs", "1"]);
  await untilRuns(plant.url, CELLS, 1);
  const processes = descendants(plant.child.pid as number);
  const hub = processes.find((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("\0hub\0")) as number;
  process.kill(hub, "SIGKILL");
  t.strictSame(await plant.ended, [1, null]);
  t.match(plant.stderr(), /^inspection-service: the hub ended with SIGKILL$/m);
  for (const pid of processes) await untilGone(pid);
  t.ok(await server.with(async (client) => (await client.lastLogSequence()) > 0), "the server was not ended");
});
