import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { RawConnection, rawRequest } from "../../helpers/http/raw-http.js";
import { TEST_CERTIFICATE, TEST_PRIVATE_KEY } from "../../helpers/http/test-certificate.js";
import { listOf } from "../../helpers/list-of.js";
import { type Ended, runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { isFullSize } from "../../helpers/test-size.js";

t.test("--help lists every option with its variable and default; --version is the release", async (t) => {
  const help = await runCommand(["--help"]);
  t.equal(help.code, 0);
  for (const command of ["serve", "demo", "check", "inspect", "keys"])
    t.match(help.stdout, new RegExp(`^ +${command} `, "m"));
  const serve = await runCommand(["serve", "--help"]);
  t.equal(serve.code, 0);
  const options = [
    ...["data", "host", "port", "open", "api-keys", "cors-origin", "tls-cert", "tls-key", "base-url", "front"],
    ...["durability", "finalize-timeout", "orphan-timeout", "cell-socket", "cell-listen", "cell-token-file"],
    ...["log-level", "log-format", "config"],
  ];
  for (const option of options) {
    t.match(serve.stdout, new RegExp(`^ +--${option}`, "m"), option);
    t.match(serve.stdout, `INSPECTION_${option.toUpperCase().replaceAll("-", "_")}`);
  }
  t.match((await runCommand(["--version"])).stdout, /^\d+\.\d+\.\d+\n$/);
});

t.test("wrong use ends with 1 and one line that says what is wrong", async (t) => {
  const folder = temporaryDirectory(t);
  const token = join(folder, "token");
  writeFileSync(token, "two words\n");
  const zeros = join(folder, "zeros");
  writeFileSync(zeros, Buffer.from("secret\0\0\0\0"));
  const notJson = join(folder, "not-json.json");
  writeFileSync(notJson, "{");
  const misspelt = join(folder, "misspelt.json");
  writeFileSync(misspelt, '{"prot": 1}');
  const data = ["--data", join(folder, "data"), "--port", "0"];
  const cases: [args: string[], stderr: RegExp, environment?: Record<string, string>][] = [
    [["srve"], /^inspection-service: unknown command 'srve' \(Did you mean serve\?\) \(--help lists all .*\)\n$/],
    [["serve", ...data, "--host", "0.0.0.0"], /--host 0\.0\.0\.0 is reachable.*--open/],
    [["serve", ...data, "--host", "::"], /--open/],
    [["serve", ...data, "--host", "127.0.0.1.example.com"], /--open/],
    [["serve", ...data, "--tls-cert", notJson], /--tls-cert and --tls-key must be given together/],
    [["serve", ...data, "--api-keys", join(folder, "absent.json")], /--api-keys: .*absent\.json does not exist/],
    [["serve", ...data, "--api-keys", notJson], /--api-keys: .*not-json\.json is not JSON/],
    [["keys", "add"], /--file is required/],
    [["keys", "list", "--file", join(folder, "absent.json")], /--file: .*absent\.json does not exist/],
    [["keys", "add", "--file", join(folder, "absent", "keys.json")], /--file: the folder .*absent does not exist/],
    [["keys", "remove", "--file", notJson, "--id", "0123456789ab"], /is not JSON/],
    [["serve", ...data, "extra"], /^inspection-service: too many arguments.* \(--help lists all .*\)\n$/],
    [["serve", ...data], /INSPECTION_DURABILITY: "half"/, { INSPECTION_DURABILITY: "half" }],
    [["serve", ...data, "--config", join(folder, "absent.json")], /--config: .*absent\.json does not exist/],
    [["serve", ...data, "--config", notJson], /is not JSON/],
    [["serve", ...data, "--config", misspelt], /"prot": this command has no such option/],
    [["serve", ...data, "--cell-listen", "127.0.0.1:0"], /--cell-listen needs --cell-token-file/],
    [
      ["serve", ...data, "--cell-listen", "127.0.0.1:0", "--cell-token-file", join(folder, "absent")],
      /--cell-token-file: .*absent does not exist/,
    ],
    [["serve", ...data, "--cell-listen", "127.0.0.1:0", "--cell-token-file", token], /must contain the token/],
    [["serve", ...data, "--cell-listen", "127.0.0.1:0", "--cell-token-file", zeros], /must contain the token/],
    [["inspect", "--from", "-1"], /--from/],
  ];
  // Side by side: each is the start of a process and little else.
  // Tests without a process prove the options too, so a commit's size tries only every sixth case.
  const tried = isFullSize ? cases : cases.filter((_, at) => at % 6 === 0);
  const runs = tried.map(([args, , environment]) => runCommand(args, environment));
  for (const [at, [args, stderr]] of tried.entries()) {
    const ended = (await runs[at]) as Ended;
    t.equal(ended.code, 1, args.join(" "));
    t.match(ended.stderr, stderr);
    t.notMatch(ended.stderr, /^\s+at /m, "no stack");
    t.equal(ended.stdout, "");
  }
  t.strictSame(
    readdirSync(folder).sort(),
    ["misspelt.json", "not-json.json", "token", "zeros"],
    "nothing was made before the options were right",
  );
});

t.test("on node:http it serves without the native binary, and over TLS", async (t) => {
  const folder = temporaryDirectory(t);
  const [certPath, keyPath] = ["cert.pem", "key.pem"].map((name) => join(folder, name)) as [string, string];
  writeFileSync(certPath, TEST_CERTIFICATE);
  writeFileSync(keyPath, TEST_PRIVATE_KEY);
  const environment = { UWS_USE_FALLBACK: "1" };
  const args = ["serve", "--front", "node", "--tls-cert", certPath, "--tls-key", keyPath];
  const service = await ServiceProcess.startFor(t, { args, environment });
  t.match(service.stdout, /^listening on https:\/\/127\.0\.0\.1:\d+ \(front: .+\)\n$/);
  const connection = await RawConnection.open(service.port, TEST_CERTIFICATE);
  connection.send("GET /system/version HTTP/1.1\r\nHost: x\r\n\r\n");
  t.equal((await connection.response())?.status, 200);
  t.equal((await service.end()).code, 0);
});

function logLines(stderr: string): Record<string, unknown>[] {
  const lines = stderr.trim().split("\n");
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

const requestLines = (stderr: string) => logLines(stderr).filter(({ msg }) => msg === "request");

t.test("--open serves on every address; one line on stdout says where, and JSON lines go to stderr", async (t) => {
  const service = await ServiceProcess.startFor(t, {
    args: ["serve", "--host", "0.0.0.0", "--open", "--log-level", "debug"],
  });
  t.match(service.stdout, /^listening on http:\/\/0\.0\.0\.0:\d+ \(front: .+\)\n$/);
  const response = await rawRequest(service.port, "GET /runs?limit=1 HTTP/1.1\r\nHost: x\r\n\r\n");
  const { stdout, stderr } = await service.end();
  t.equal(stdout.trim().split("\n").length, 1);
  const [request] = requestLines(stderr);
  t.match(request, { trace_id: response?.headers["x-trace-id"] as string, method: "GET", path: "/runs" });
  t.match(request, { query: "limit=1", status: 200 });
});

t.test("options come from the environment and the file too; variables of others are named in one line", async (t) => {
  const config = join(temporaryDirectory(t), "config.json");
  writeFileSync(config, JSON.stringify({ "base-url": "https://results.factory/cell-1/", host: "127.0.0.2" }));
  // As Kubernetes sets them for services called "inspection" and "inspection-console".
  const links = Object.fromEntries(
    ["INSPECTION", "INSPECTION_CONSOLE"].flatMap((service) => [
      [`${service}_SERVICE_HOST`, "10.96.0.7"],
      [`${service}_SERVICE_PORT`, "80"],
      [`${service}_PORT_80_TCP`, "tcp://10.96.0.7:80"],
      [`${service}_PORT_80_TCP_ADDR`, "10.96.0.7"],
      [`${service}_PORT`, "tcp://10.96.0.7:80"],
    ]),
  );
  const ours = { INSPECTION_CONFIG: config, INSPECTION_HOST: "127.0.0.1" };
  const environment = { ...links, ...ours, INSPECTION_PROT: "9", NODE_TLS_REJECT_UNAUTHORIZED: "0" };
  const service = await ServiceProcess.startFor(t, { environment });
  t.match(service.stdout, /http:\/\/127\.0\.0\.1:/);
  const client = new ContractClient(t, service.port);
  const version = (await runCommand(["--version"])).stdout.trim();
  t.strictSame(await client.get("/system/version"), { "service-version": version }, "the release that is served");
  const refused = await rawRequest(service.port, "GET /runs?limit=0 HTTP/1.1\r\nHost: x\r\n\r\n");
  const { code, stderr } = await service.end();
  t.equal(code, 0);
  const unknown =
    /^ignored environment variables, as no option has such a name: INSPECTION_CONSOLE_PORT, .*INSPECTION_PROT, INSPECTION_SERVICE_HOST/;
  const warnings = logLines(stderr).filter(({ level, msg }) => level === 40 && msg !== "request");
  t.match(warnings, listOf({ msg: unknown }, { msg: /^NODE_TLS_REJECT_UNAUTHORIZED=0: / }));
  const told = { trace_id: refused?.headers["x-trace-id"] as string, path: "/runs", query: "limit=0", status: 422 };
  t.match(requestLines(stderr), listOf(told), "at the default level an answer that is an error has its line only");
  const listed = await runCommand(["inspect", "--data", service.dataDirectory], { "INSPECTION_\u001b[2J": "x" });
  t.equal(listed.code, 0);
  t.match(
    listed.stderr,
    /^inspection-service: ignored environment variables, .*: INSPECTION_\\u001b\[2J \(--help lists all options\)\n$/,
  );
});

t.test("an IPv6 loopback", async (t) => {
  let service: ServiceProcess;
  try {
    service = await ServiceProcess.startFor(t, { args: ["serve", "--host", "::1"] });
  } catch (error) {
    // A machine without IPv6 says that it cannot listen; that message is the contract then.
    t.match((error as Error).message, /cannot listen on ::1/);
    return;
  }
  t.match(service.stdout, /^listening on http:\/\/\[::1\]:\d+ \(front: .+\)\n$/);
});
