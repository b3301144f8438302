import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import t, { type Test } from "tap";
import { SERVE_OPTIONS } from "../../../http/commands/command-options.js";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { pythonWith } from "../../helpers/captures/python-checker.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { until } from "../../helpers/until.js";

const UNIT = "http/package/inspection-service.service";
const unit = readFileSync(UNIT, "utf8");

const hasProgram = (name: string): boolean => spawnSync(name, ["--version"]).status === 0;

/** Takes datagrams as systemd does, and prints each on a line. */
const RECEIVER = `
import socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
print("bound", flush=True)
while True:
    print(receiver.recv(4096).decode().replace("\\n", " "), flush=True)
`;

/** @returns the lines that come, one after the other */
function notices(t: Test, python: string, path: string): AsyncIterator<string> {
  const receiver = spawn(python, ["-c", RECEIVER, path], { stdio: ["ignore", "pipe", "inherit"] });
  t.teardown(() => receiver.kill());
  return createInterface({ input: receiver.stdout })[Symbol.asyncIterator]();
}

const python = pythonWith("socket");
const missing = python === undefined || !hasProgram("systemd-notify");

t.test(
  "systemd hears of the start, of each half of the watchdog's time, and of the stop",
  {
    skip: missing && "systemd-notify or Python is not installed",
  },
  async (t) => {
    const socket = join(temporaryDirectory(t), "notify");
    const lines = notices(t, python as string, socket);
    const next = async (): Promise<string> => {
      for (;;) {
        const line = (await lines.next()).value as string;
        // systemd-notify asks by this whether its message was taken.
        if (line !== "BARRIER=1") return line;
      }
    };
    t.equal(await next(), "bound");
    const environment = { NOTIFY_SOCKET: socket, WATCHDOG_USEC: "200000" };
    const service = await ServiceProcess.startFor(t, { environment });
    t.match(await next(), /^STATUS=listening on http:\/\/127\.0\.0\.1:\d+ \(front: .*\)$/);
    t.equal(await next(), "READY=1");
    for (let n = 0; n < 3; n++) t.equal(await next(), "WATCHDOG=1");
    const children = readFileSync(`/proc/${service.pid}/task/${service.pid}/children`, "utf8").trim().split(" ");
    const sender = children.find((pid) => readFileSync(`/proc/${pid}/comm`, "utf8") === "sh\n");
    process.kill(Number(sender), "SIGKILL");
    await service.untilStderr(/systemd cannot be told anything: the shell that tells it ended with SIGKILL/);
    t.equal(await next(), "WATCHDOG=1", "and goes on when what tells it has died");
    const ended = service.end();
    let line = await next();
    while (line === "WATCHDOG=1") line = await next();
    t.equal(line, "STOPPING=1");
    t.match(await ended, { code: 0, stderr: /^((?!could not be told).)*$/s });
  },
);

t.test(
  "a watchdog of another process is not fed, and a socket that is gone stops nothing",
  {
    skip: missing && "systemd-notify or Python is not installed",
  },
  async (t) => {
    const folder = temporaryDirectory(t);
    const socket = join(folder, "notify");
    const lines = notices(t, python as string, socket);
    await lines.next();
    const others = { NOTIFY_SOCKET: socket, WATCHDOG_USEC: "1000", WATCHDOG_PID: "1" };
    const service = await ServiceProcess.startFor(t, { environment: others });
    const ended = service.end();
    const said: string[] = [];
    while (!said.includes("STOPPING=1")) said.push((await lines.next()).value as string);
    t.same(
      said.filter((line) => line === "WATCHDOG=1"),
      [],
    );
    t.equal((await ended).code, 0);
    rmSync(socket);
    const alone = await ServiceProcess.startFor(t, { environment: { NOTIFY_SOCKET: socket } });
    await alone.untilStderr(/inspection-service: systemd could not be told something: /);
    t.equal((await alone.end()).code, 0);
  },
);

t.test("the unit is hardened, and starts the service by options that it has", async (t) => {
  const command = /^ExecStart=\/usr\/bin\/inspection-service serve --config (\S+)$/m.exec(unit)?.[1];
  t.equal(command, "/etc/inspection-service/config.json");
  const options = JSON.parse(readFileSync("http/package/config.json", "utf8")) as Record<string, unknown>;
  for (const [name, value] of Object.entries(options)) {
    const { parse } = SERVE_OPTIONS[name as keyof typeof SERVE_OPTIONS] ?? {};
    t.not(parse?.(String(value)), undefined, `${name}: ${value}`);
  }
  t.equal(options["cell-socket"], "/run/inspection-service/cell.sock", "in RuntimeDirectory=");
  t.equal(options.data, "/var/lib/inspection-service", "in StateDirectory=");
  const analyze = !hasProgram("systemd-analyze") && "systemd-analyze is not installed";
  t.test("as systemd judges it", { skip: analyze }, async (t) => {
    const judged = spawnSync("systemd-analyze", ["security", "--offline=true", "--threshold=20", `./${UNIT}`], {
      encoding: "utf8",
    });
    const exposure = Number(/Overall exposure level for \S+: ([\d.]+)/.exec(judged.stdout)?.[1]);
    t.comment(`exposure ${exposure}`);
    t.ok(exposure <= 2, judged.stdout + judged.stderr);
    t.equal(judged.status, 0);
  });
});

/** An account that is in the group, and one that is not; neither owns the socket. */
const [GROUP, MEMBER, STRANGER] = [4242, 4243, 4244];
const CONNECT = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])";

t.test(
  "--cell-socket-access group lets the socket's group connect, and nobody else",
  {
    skip: (process.getuid?.() !== 0 || python === undefined) && "it needs root and Python",
  },
  async (t) => {
    const folder = temporaryDirectory(t);
    const sockets = join(folder, "run");
    mkdirSync(sockets, { mode: 0o750 });
    // The folder gives its group to what is made in it.
    spawnSync("chgrp", [String(GROUP), sockets]);
    spawnSync("chmod", ["2755", sockets]);
    spawnSync("chmod", ["755", folder]);
    const path = join(sockets, "cell.sock");
    const args = ["serve", "--cell-socket", path, "--cell-socket-access", "group"];
    const service = await ServiceProcess.startFor(t, { args });
    const status = statSync(path);
    t.same([status.mode & 0o777, status.gid], [0o660, GROUP]);
    const connect = (uid: number, gid: number) =>
      spawnSync(python as string, ["-c", CONNECT, path], { uid, gid, encoding: "utf8" });
    t.equal(connect(MEMBER, GROUP).stderr, "");
    t.match(connect(STRANGER, STRANGER).stderr, /PermissionError/);
    rmSync(path);
    await until(path, () => existsSync(path));
    const producer = new ProducerClient({ address: { path }, producer: "press" });
    await producer.welcomed();
    t.equal(statSync(path).mode & 0o777, 0o660, "also when it was made again");
    await producer.close();
    t.equal((await service.end()).code, 0);
    writeFileSync(join(folder, "config.json"), '{"cell-socket-access": "all"}');
    const wrong = ServiceProcess.start({ args: ["serve", "--config", join(folder, "config.json")] });
    await t.rejects(wrong, /"cell-socket-access": "all" is not allowed; it must be one of owner, group/);
  },
);
