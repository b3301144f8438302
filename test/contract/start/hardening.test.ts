import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { rawRequest } from "../../helpers/http/raw-http.js";
import { nextId, PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { listOf } from "../../helpers/list-of.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

const OBEYED = /(?!\n)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u;

t.test("what the service makes is its account's, the link's socket too; SIGUSR1 opens no inspector", async (t) => {
  const service = await ServiceProcess.startFor(t);
  t.match(readFileSync(`/proc/${service.pid}/status`, "utf8"), /^Umask:\s*0077$/m, "from its first moment on");
  t.equal(statSync(service.cellSocketPath).mode & 0o777, 0o600);
  // Threads have children too: the processes that look names up.
  const tasks = `/proc/${service.pid}/task`;
  const children = readdirSync(tasks).flatMap((task) => readFileSync(`${tasks}/${task}/children`, "utf8").split(" "));
  for (const pid of [service.pid, ...children.map(Number)]) if (pid > 0) process.kill(pid, "SIGUSR1");
  for (let n = 0; n < 20; n++) await rawRequest(service.port, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
  const { code, stderr } = await service.end();
  t.equal(code, 0);
  t.notMatch(stderr, /debugger/i);
});

t.test("folders that others may write are told of", async (t) => {
  const folder = temporaryDirectory(t);
  const warnings = async (dataMode: number, socketMode: number) => {
    const [data, sockets] = ["data", "sockets"].map((name) => join(folder, name)) as [string, string];
    for (const path of [data, sockets]) mkdirSync(path, { recursive: true });
    if (process.getuid?.() === 0) chownSync(sockets, 0, 4242);
    chmodSync(data, dataMode);
    chmodSync(sockets, socketMode);
    const service = await ServiceProcess.startFor(t, {
      dataDirectory: data,
      args: ["serve", "--cell-socket", join(sockets, "s")],
    });
    const { stderr } = await service.end();
    const lines = stderr
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { level: number });
    return lines.filter(({ level }) => level >= 40);
  };
  t.same(await warnings(0o755, 0o1777), []);
  const [everybody, group] = [/^everybody may write/, /^its group may write/];
  const isRoot = process.getuid?.() === 0;
  t.match(
    await warnings(0o777, 0o2770),
    isRoot
      ? listOf({ msg: everybody, folder: /data$/ }, { msg: group, folder: /sockets$/ })
      : { 0: { msg: everybody } },
  );
});

t.test("no command sends what a terminal obeys", async (t) => {
  const service = await ServiceProcess.startFor(t);
  const raw = await RawProducer.connect({ path: service.cellSocketPath }, "cell");
  const id = nextId();
  const metadata = { note: "\u001b[2J \u009b2J \u202etxt.exe\u2066 \u2028 \u007f \r\n é \u{1f600}" };
  await raw.accept(programPut());
  await raw.accept({ type: "run.create", id, program_id: PROGRAM_ID, metadata });
  raw.socket.destroy();
  await rawRequest(service.port, "GET /runs?limit=\u00c2\u009b2J HTTP/1.1\r\nHost: x\r\n\r\n");
  const { stderr } = await service.end();
  t.notMatch(stderr, OBEYED, "no line of the log in JSON either");
  const inspected = await runCommand(["inspect", "--data", service.dataDirectory, "--run", id]);
  t.notMatch(inspected.stdout, OBEYED);
  t.match(
    JSON.parse(inspected.stdout.trim()),
    { content: { changes: listOf({ metadata }) } },
    "as JSON it is what it was",
  );
  const wrong = "\u001b]0;x\u0007\u202e";
  for (const args of [
    [`n${wrong}`],
    ["check", "--data", `/tmp/${wrong}`],
    ["serve", `--${wrong}`],
    ["serve", "--port", wrong],
  ]) {
    const ended = await runCommand(args);
    t.equal(ended.code, 1);
    t.match(ended.stderr, /\\u001b\]0;x/);
    t.notMatch(ended.stderr, OBEYED);
  }
});
