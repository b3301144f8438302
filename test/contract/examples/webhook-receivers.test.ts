import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { copyFileSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import t, { type Test } from "tap";
import { signatureHeaders } from "../../../core/webhook/webhook-signature.js";
import { pythonWith, runPython } from "../../helpers/captures/python-checker.js";
import { PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { freePort } from "../../helpers/system/free-port.js";

const FOLDER = "workers/webhooks/examples";
const [SECRET, OLD_SECRET] = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "the-one-before"];
/** A space too many is no secret. */
const environment = { ...process.env, WEBHOOK_SECRETS: ` ${SECRET}  ${OLD_SECRET} ` };
const MOST_BODY_BYTES = 16 * 1024 * 1024;

interface Example {
  name: string;
  /** Undefined where nothing can run it. @param folder for what is compiled */
  command(folder: string): string[] | undefined;
  /** Its answer to a body in chunks, which does not say how long it is, and after how many bytes it comes. */
  inChunks: { status: number; bytes: number };
  /** Ids of the stored events, in the order in which they came. */
  stored(store: string): string[];
}

const works = (command: string, ...args: string[]): boolean => spawnSync(command, args).status === 0;
const python = pythonWith("sqlite3");

const EXAMPLES: Example[] = [
  {
    name: "Python",
    inChunks: { status: 411, bytes: 0 },
    command: () => (python === undefined ? undefined : [python, join(FOLDER, "receiver.py")]),
    stored: (store) =>
      JSON.parse(
        runPython(
          python as string,
          `import json, sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute("SELECT event_id FROM events ORDER BY rowid")
print(json.dumps([row[0] for row in rows]))`,
          store,
        ),
      ) as string[],
  },
  {
    name: "C#",
    // It reads 64 KiB at a time.
    inChunks: { status: 413, bytes: MOST_BODY_BYTES + 64 * 1024 },
    command(folder) {
      for (const file of ["receiver.cs", "receiver.csproj"]) copyFileSync(join(FOLDER, file), join(folder, file));
      if (works("dotnet", "--version")) {
        execFileSync("dotnet", ["build", "--nologo", "-o", "built"], { cwd: folder, stdio: "pipe" });
        return ["dotnet", join(folder, "built/receiver.dll")];
      }
      if (!works("mcs", "--version") || !works("mono", "--version")) return undefined;
      execFileSync("mcs", ["-warnaserror", "-out:receiver.exe", "receiver.cs"], { cwd: folder, stdio: "pipe" });
      return ["mono", join(folder, "receiver.exe")];
    },
    stored: (store) => {
      const lines = readFileSync(store, "utf8").trim().split("\n");
      return lines.map((line) => line.split(" ")[0] as string);
    },
  },
];

class RunningReceiver {
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.#lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
    this.url = `http://127.0.0.1:${port}/`;
  }

  static async start(t: Test, command: readonly string[], store: string): Promise<RunningReceiver> {
    const port = await freePort();
    const [binary, ...args] = [...command, resolve(store), String(port)];
    const child = spawn(binary as string, args, { env: environment, stdio: ["ignore", "pipe", "inherit"] });
    t.teardown(() => child.kill("SIGKILL"));
    const receiver = new RunningReceiver(child, port);
    t.equal(await receiver.says(), `listening on ${port}`);
    return receiver;
  }

  /** The next line of the example; not those of its runtime, which may complain about the machine. */
  async says(): Promise<string | undefined> {
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done || /^(listening on \d+|\w+ (new|again))$/.test(value)) return value;
    }
  }

  async post(body: Buffer, headers: Record<string, string>): Promise<number> {
    return (await fetch(this.url, { method: "POST", body: new Uint8Array(body), headers })).status;
  }

  async kill(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once("close", resolve));
    this.#child.kill("SIGKILL");
    await ended;
  }
}

const EVENT_ID = "019b0a5e-7c00-7000-8000-000000000001";

/** An event as the service sends it. */
function signed(secret: string, ageSeconds = 0, eventId = EVENT_ID, updatedAt = "2026-01-31T12:00:00.000000Z") {
  const data = { run_id: "019b0a5e-7c00-7000-8000-0000000000aa", updated_at: updatedAt };
  const body = Buffer.from(JSON.stringify({ event_id: eventId, event_name: "ProgramStarted", data }));
  const seconds = Math.floor(Date.now() / 1000) - ageSeconds;
  const signers = { secrets: [secret], privateKey: null };
  const headers = { ...signatureHeaders(signers, eventId, seconds, body), "X-Service-Event": "ProgramStarted" };
  return { body, headers };
}

/** The answer to a body that does not end: one that is only announced, or one that comes in chunks. */
function answerTo(url: string, headers: Record<string, number | string>, bytes = 0): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: "POST", headers });
    sent.once("response", (response) => {
      resolve(response.statusCode);
      sent.destroy();
    });
    sent.once("error", reject);
    if (bytes === 0) sent.flushHeaders();
    else sent.write(Buffer.alloc(bytes));
  });
}

/** A run with two events, from the real service. */
async function serviceDelivers(t: Test, url: string): Promise<void> {
  const service = await ServiceProcess.startFor(t);
  const events = ["ProgramStarted", "ProgramCompleted"];
  const webhook = { name: "MES", url, secret: SECRET, subscribed_events: events };
  const made = await fetch(`http://127.0.0.1:${service.port}/webhooks`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(webhook),
  });
  t.equal(made.status, 201);
  const producer = service.producerFor(t);
  await producer.welcomed();
  const id = producer.nextRunId();
  await producer.deliver(programPut(PROGRAM_ID, 1));
  await producer.deliver({ type: "run.create", id, program_id: PROGRAM_ID });
  await producer.deliver({ type: "run.start", id });
  await producer.deliver({ type: "run.finish", id });
}

for (const example of EXAMPLES) {
  const command = example.command(temporaryDirectory(t));
  const skip = command === undefined && `nothing here runs ${example.name}`;
  t.test(`the receiver in ${example.name}`, { skip }, async (t) => {
    t.comment((command as string[])[0] as string);
    const store = join(temporaryDirectory(t), "events");
    for (const secrets of [undefined, "", " \t\n ", "whsec_", `${SECRET} whsec_`]) {
      const [binary, ...args] = [...(command as string[]), store, String(await freePort())];
      const env = { ...process.env, WEBHOOK_SECRETS: secrets };
      const { status, stderr } = spawnSync(binary as string, args, { env, encoding: "utf8", timeout: 30_000 });
      t.equal(status, 1, `it does not start with ${JSON.stringify(secrets)}`);
      t.match(stderr, /WEBHOOK_SECRETS must have the secret of the webhook/);
    }
    const receiver = await RunningReceiver.start(t, command as string[], store);
    await serviceDelivers(t, receiver.url);
    const said = [await receiver.says(), await receiver.says()].sort();
    t.same(said, ["ProgramCompleted new", "ProgramStarted new"]);

    const status = ({ body, headers }: ReturnType<typeof signed>) => receiver.post(body, headers);
    t.equal(await status(signed("another secret")), 401);
    t.equal(await status(signed(SECRET, 400)), 401, "too old");
    t.equal(await status(signed(SECRET, -400)), 401, "too new");
    const changed = signed(SECRET);
    t.equal(await receiver.post(Buffer.concat([changed.body, Buffer.from(" ")]), changed.headers), 401);
    t.equal(await receiver.post(changed.body, {}), 401, "no signature");
    t.equal(await status(signed("")), 401, "an empty secret");
    t.equal(await answerTo(receiver.url, { "Content-Length": MOST_BODY_BYTES + 1 }), 413);
    const chunked = { "Transfer-Encoding": "chunked" };
    t.equal(await answerTo(receiver.url, chunked, example.inChunks.bytes), example.inChunks.status);
    t.equal(await status(signed(SECRET)), 204);
    t.equal(await receiver.says(), "ProgramStarted new");
    t.equal(await status(signed(OLD_SECRET)), 204, "the secret before this one");
    t.equal(await receiver.says(), "ProgramStarted again");

    await receiver.kill();
    const ids = example.stored(store);
    t.equal(new Set(ids).size, 3);
    t.equal(ids.length, 3, "each once");
    t.ok(ids.includes(EVENT_ID), "what was answered with 204 is on the disk");
    const anew = await RunningReceiver.start(t, command as string[], store);
    const { body, headers } = signed(SECRET);
    t.equal(await anew.post(body, headers), 204);
    t.equal(await anew.says(), "ProgramStarted again", "after a restart too");
    await anew.kill();
  });
}

t.test(
  "the receiver in Python keeps the newest state of a run",
  {
    skip: python === undefined && "Python is not there",
  },
  async (t) => {
    const store = join(temporaryDirectory(t), "events");
    const receiver = await RunningReceiver.start(t, [python as string, join(FOLDER, "receiver.py")], store);
    const times = [3, 1, 5, 2].map((second) => `2026-01-31T12:00:0${second}.000000Z`);
    for (const [at, time] of times.entries()) {
      const { body, headers } = signed(SECRET, 0, EVENT_ID.replace(/.$/, String(at + 2)), time);
      t.equal(await receiver.post(body, headers), 204);
    }
    await receiver.kill();
    const script =
      'import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute("SELECT updated_at FROM runs").fetchall())';
    t.equal(runPython(python as string, script, store).trim(), `[('${times[2]}',)]`);
  },
);
