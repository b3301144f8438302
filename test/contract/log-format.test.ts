import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import t, { type Test } from "tap";
import { rawRequest } from "../helpers/http/raw-http.js";
import { repeatedKeys } from "../helpers/process/log-lines.js";
import { ServiceProcess } from "../helpers/process/service-process.js";
import { isFullSize } from "../helpers/test-size.js";

const CLEAR_SCREEN = "GET /runs?limit=\u009b2J HTTP/1.1\r\nHost: x\r\n\r\n";
const WRONG_LIMIT = "GET /runs?limit=x HTTP/1.1\r\nHost: x\r\n\r\n";

async function stderrWith(t: Test, ...args: string[]): Promise<string> {
  const service = await ServiceProcess.startFor(t, { args: ["serve", ...args] });
  await rawRequest(service.port, WRONG_LIMIT);
  await rawRequest(service.port, CLEAR_SCREEN);
  return (await service.end()).stderr;
}

t.test("auto where stderr is no terminal: JSON lines, each key once, and the line's own level", async (t) => {
  t.same(repeatedKeys('{"a":{"a":1,"b":[{"a":2}]},"b":"\\"a\\":"}\n{"level":40,"x":[],"level":"low"}\n'), [
    '{"level":40,"x":[],"level":"low"}',
  ]);
  // Ends with an error where a line has a key twice, as every test's service does.
  const stderr = await stderrWith(t, "--disk-low-bytes", "99.9%", "--disk-critical-bytes", "1");
  const lines = stderr.trim().split("\n");
  t.ok(lines.length > 1);
  for (const line of lines) t.match(JSON.parse(line), { service_version: /./, msg: /./ });
  const room = lines.find((line) => line.includes("the disk has little room"));
  t.match(JSON.parse(room as string), { level: 40, room: "low" });
});

t.test("--log-format pretty: lines to read, without colours where stderr is no terminal", async (t) => {
  const stderr = await stderrWith(t, "--log-format", "pretty");
  t.match(stderr, /^\d\d:\d\d:\d\d {2}info {3}opened the log$/m);
  t.match(
    stderr,
    /^\d\d:\d\d:\d\d {2}info {3}request {2}trace_id=\S+ method=GET path=\/runs query="limit=x" status=422 /m,
  );
  t.notMatch(stderr, /[^\P{Cc}\n]/u);
});

/** Runs the command with a terminal for its stderr until it has said its first line on stdout, and prints what came to the terminal. */
const AT_TERMINAL = `
import os, pty, subprocess, sys
terminal, stderr = pty.openpty()
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=stderr)
child.stdout.readline()
child.terminate()
child.wait()
os.close(stderr)
try:
    while piece := os.read(terminal, 4096): sys.stdout.buffer.write(piece)
except OSError: pass # Linux's way to say that it has ended.
`;

import { temporaryDirectory } from "../helpers/recorder/recorder-harness.js";

const withTerminal =
  spawnSync("python3", ["-c", "import pty"]).status === 0 ? {} : { skip: "no python3 with its module pty" };

t.test("auto on a terminal: lines to read, in colours unless NO_COLOR says otherwise", withTerminal, async (t) => {
  const data = temporaryDirectory(t);
  const shown = async (environment: Record<string, string>, ...args: string[]): Promise<string> => {
    const command = [process.execPath, "dist/http/main.js", "serve", "--port", "0", "--data", data, ...args];
    const { stdout } = await promisify(execFile)("python3", ["-c", AT_TERMINAL, ...command], {
      env: { ...process.env, TERM: "xterm", NO_COLOR: "", ...environment },
    });
    return stdout.replaceAll("\u001b", "ESC");
  };
  t.match(await shown({}), /^\d\d:\d\d:\d\d {2}ESC\[32minfo ESC\[0m {2}opened the log/m);
  if (isFullSize) t.match(await shown({ NO_COLOR: "1" }), /^\d\d:\d\d:\d\d {2}info {3}opened the log/m);
  t.match(await shown({}, "--log-format", "json"), /^\{"level":30,/m);
});
