/** The commands of the pages beside the examples, as they are printed. */

import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { cpSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import t, { type Test } from "tap";
import { signatureHeaders } from "../../../core/webhook/webhook-signature.js";
import { pythonWith } from "../../helpers/captures/python-checker.js";
import { documentedCell } from "../../helpers/documents/documented-cell.js";
import { MarkdownPage } from "../../helpers/documents/markdown-page.js";
import { listOf } from "../../helpers/list-of.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { freePort } from "../../helpers/system/free-port.js";
import { pythonWithMessagePack } from "../../helpers/system/message-pack-python.js";
import { until } from "../../helpers/until.js";

const run = promisify(execFile);

/** A copy of the folder: examples write beside themselves. */
function copyOf(t: Test, folder: string): string {
  const copy = temporaryDirectory(t);
  cpSync(folder, copy, { recursive: true });
  return copy;
}

/** The commands, with the Python that has what they need, and with the address of the test's service. */
function script(block: string, service: ServiceProcess, python: string): string {
  const commands = block.replaceAll("http://127.0.0.1:8000", `http://127.0.0.1:${service.port}`);
  return `python3() { '${python}' "$@"; }
if ! command -v sqlite3 >/dev/null; then
    sqlite3() { python3 -c 'import sqlite3, sys; [print(*row, sep="|") for row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2])]' "$@"; }
fi
${commands}`;
}

t.test("each example has at most 120 lines, and the page beside it leads to it", async (t) => {
  for (const folder of ["http/client/examples", "workers/cell-link/examples", "workers/webhooks/examples"]) {
    const { text } = new MarkdownPage(join(folder, "README.md"));
    for (const name of readdirSync(folder).filter((one) => one !== "README.md")) {
      t.ok(text.includes(`](${name})`), name);
      const lines = readFileSync(join(folder, name), "utf8").split("\n").length - 1;
      t.ok(lines <= 120, `${name}: ${lines} lines`);
    }
  }
});

const [pandas, sqlite] = [pythonWith("numpy", "pandas"), pythonWith("sqlite3")];
const packing = pythonWithMessagePack();
const packer = "missing" in packing ? undefined : packing.binary;

t.test("an example without arguments says in one line how it is called", async (t) => {
  for (const [path, python] of [
    ["http/client/examples/frame_in_millimetres.py", pandas],
    ["http/client/examples/sync_into_sqlite.py", sqlite],
    ["workers/cell-link/examples/inspect_part.py", packer],
    ["workers/webhooks/examples/receiver.py", sqlite],
  ] as const) {
    if (python === undefined) {
      t.pass(path, { skip: "its Python is not there" });
      continue;
    }
    const env = "missing" in packing ? process.env : packing.environment;
    const { status, stderr } = spawnSync(python, [path], { env, encoding: "utf8" });
    t.match([status, stderr], listOf(1, new RegExp(`^usage: .*python3 ${basename(path)} [A-Z]+ [A-Z]+\\n$`)), path);
  }
});

t.test("readers", { skip: pandas === undefined && "numpy and pandas are not there" }, async (t) => {
  const folder = "http/client/examples";
  const page = new MarkdownPage(join(folder, "README.md"));
  const service = await ServiceProcess.startFor(t);
  const env = { ...process.env, ...(await documentedCell(service)) };
  const cwd = copyOf(t, folder);
  const typed = async (heading: string): Promise<string> => {
    const [block, ...others] = page.blocks(heading, "sh");
    t.same(others, []);
    const { stdout } = await run("bash", ["-ec", script(block as string, service, pandas as string)], { cwd, env });
    return stdout;
  };
  t.match(await typed("## A frame in millimetres"), /"points": \d+/);
  t.match(await typed("## A copy in SQLite"), /^1 run$/m);
});

interface Runs {
  total: number;
}

t.test("the producer", { skip: "missing" in packing && packing.missing }, async (t) => {
  const folder = "workers/cell-link/examples";
  const [block] = new MarkdownPage(join(folder, "README.md")).blocks("# A producer in Python", "sh");
  const service = await ServiceProcess.startFor(t);
  const cwd = copyOf(t, folder);
  symlinkSync(service.dataDirectory, join(cwd, "demo-data"));
  const { binary, environment: env } = packing as Exclude<typeof packing, { missing: string }>;
  const { stdout } = await run("bash", ["-ec", script(block as string, service, binary)], { cwd, env });
  t.equal(stdout.trim().split("\n").length, 3);
  const shown = async () => ((await (await fetch(`http://127.0.0.1:${service.port}/runs`)).json()) as Runs).total;
  // A run is shown a moment after its messages are acknowledged.
  await until("three runs", async () => (await shown()) >= 3);
  t.equal(await shown(), 3);
});

const SECRET = "whsec_aHVzaGh1c2hodXNo";
const EVENT_ID = "019b0a5e-7c00-7000-8000-000000000001";

/** Posts an event as the service does, once somebody listens. */
async function posted(url: string, child: ChildProcess): Promise<number> {
  const data = { run_id: EVENT_ID, updated_at: "2026-01-31T12:00:00.000000Z" };
  const body = Buffer.from(JSON.stringify({ event_id: EVENT_ID, event_name: "ProgramStarted", data }));
  const signers = { secrets: [SECRET], privateKey: null };
  while (child.exitCode === null) {
    const headers = signatureHeaders(signers, EVENT_ID, Math.floor(Date.now() / 1000), body);
    try {
      return (await fetch(url, { method: "POST", body, headers: { ...headers, "X-Service-Event": "ProgramStarted" } }))
        .status;
    } catch (error) {
      if ((error as { cause?: { code?: string } }).cause?.code !== "ECONNREFUSED") throw error;
    }
  }
  throw new Error(`it ended with ${child.exitCode}`);
}

t.test("the receiver in Python", { skip: sqlite === undefined && "Python is not there" }, async (t) => {
  const folder = "workers/webhooks/examples";
  const blocks = new MarkdownPage(join(folder, "README.md")).blocks("# Receivers of webhooks", "sh").join("");
  const command = /^.*receiver\.py.*$/m.exec(blocks)?.[0] as string;
  const cwd = copyOf(t, folder);
  const port = await freePort();
  const line = command.replace(" python3 ", ` exec '${sqlite}' `).replace("9000", String(port));
  t.ok(line.startsWith(`WEBHOOK_SECRETS=${SECRET} `), "the secret that the test signs with");
  t.match(line, / exec .* events\.sqlite \d+$/);
  const child = spawn("bash", ["-ec", line], { cwd, stdio: ["ignore", "ignore", "inherit"] });
  t.teardown(() => child.kill("SIGKILL"));
  t.equal(await posted(`http://127.0.0.1:${port}/`, child), 204);
  // SQLite keeps the newest pages in a file beside it.
  const files = readdirSync(cwd).filter((name) => name.startsWith("events.sqlite"));
  t.ok(Buffer.concat(files.map((name) => readFileSync(join(cwd, name)))).includes(EVENT_ID), files.join(" "));
});
