/** Runs what the documents tell their readers to type: every request, command and option that they name works as they say. */
import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import t, { type Test } from "tap";
import * as commandOptions from "../../http/commands/command-options.js";
import type { OptionDeclarations } from "../../http/commands/option-kinds.js";
import { environmentName } from "../../http/commands/resolve-options.js";
import { NPY_IN_MILLIMETRES } from "../../http/openapi/frame-millimetres.js";
import { plantStreams } from "../../workers/plant/plant-streams.js";
import { type Command, commandsOf, fencesOf, inlineCodeOf } from "../helpers/documents/document-text.js";
import { documentedCell, type Names } from "../helpers/documents/documented-cell.js";
import { HAS_UWS } from "../helpers/http/fronts-here.js";
import { RECEIVER_CERTIFICATE, RECEIVER_PRIVATE_KEY } from "../helpers/http/test-authority.js";
import { runCommand, ServiceProcess } from "../helpers/process/service-process.js";
import { temporaryDirectory } from "../helpers/recorder/recorder-harness.js";
import { freePort } from "../helpers/system/free-port.js";

const README = "README.md";
const GUIDE = "http/README.md";
/** Documents whose shell commands are run here. */
const DOCUMENTS = [
  README,
  GUIDE,
  "http/STATISTICS.md",
  "http/commands/README.md",
  "http/demo/README.md",
  ".github/CONTRIBUTING.md",
  // Once more: it makes a webhook, and the guide has deleted the one of before.
  README,
  "workers/webhooks/README.md",
];
/** Documents whose shell commands are run by another test in this folder. */
const RUN_ELSEWHERE: Readonly<Record<string, string>> = {
  "http/client/examples/README.md": "examples/example-pages",
  "http/hub/README.md": "plant/guide",
  "http/monitoring/RUNBOOK.md": "package/debian-package",
  "http/package/README.md": "package/debian-package",
  "storage/BACKUP.md": "package/debian-package",
  "storage/README.md": "commands/store-pages",
  "workers/cell-link/README.md": "commands/store-pages",
  "workers/cell-link/examples/README.md": "examples/example-pages",
  "workers/plant/PLANT.md": "plant/guide",
  "workers/webhooks/examples/README.md": "examples/example-pages",
};
const FOLDERS = ["core", "storage", "workers", "http", ".github"];
const ALL_DOCUMENTS = FOLDERS.flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).map((path) => join(folder, path)),
).filter((path) => path.endsWith(".md"));
/** Where the documents serve. The test puts the address and folder of its own service in their place. */
const [URL_IN_DOCUMENTS, RECEIVER_PORT] = ["http://127.0.0.1:8000", "9000"];
const [DATA_IN_DOCUMENTS, BACKUP_IN_DOCUMENTS] = ["/var/lib/inspection", "/backup/"];
const POLL_MS = 20;
const TEST_SCRIPT = ".ci/test.mjs";
/** Paths below dist/test. */
const TEST_FILES = readdirSync("dist/test", { recursive: true, encoding: "utf8" }).filter((path) =>
  path.endsWith(".test.js"),
);
/** Commands that go on until a signal. They are started, on a free port and with a store of their own. */
const SERVING_COMMANDS = ["serve", "demo", "listen"];
/** Commands that need a store which is not being served. */
const STORE_COMMANDS = ["check", "inspect", "export", "producers"];

type Declarations = OptionDeclarations;
const { SERVE_OPTIONS, DEMO_OPTIONS } = commandOptions;
const OPTION_NAMES = new Set(
  Object.entries(commandOptions).flatMap(([name, value]) =>
    name.endsWith("_OPTIONS") ? Object.keys(value as Declarations) : [],
  ),
);
/** Options of other programs. */
const OTHER_OPTIONS = ["help", "format", "health-cmd"];

const packageJson = JSON.parse(readFileSync("package.json", "utf8")) as {
  version: string;
  scripts: Record<string, string>;
  optionalDependencies: Record<string, string>;
};

interface InterfaceDocument {
  paths: Record<string, Partial<Record<string, { parameters?: { in: string; name: string }[] }>>>;
}

interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs the text by bash. Stderr's last line is a request's status. With a socket as stdin, bash needs --norc. */
function runInShell(text: string, folder: string, names: Names): Promise<Ran> {
  const script = `curl() { command curl -q -sS --noproxy '*' --max-time 30 -w '%{stderr}%{http_code}' "$@"; }\n${text}`;
  return new Promise((done) => {
    execFile(
      "bash",
      ["--norc", "-euo", "pipefail", "-c", script],
      { cwd: folder, env: { ...process.env, ...names } },
      (error, stdout, stderr) => done({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

/** What is wrong with the options of a command that serves, or null. The command is not started. */
function faultOfOptions(words: readonly string[], declarations: Declarations): string | null {
  const rest = [...words];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    const option = declarations[word.replace(/^--/, "")];
    if (!word.startsWith("--") || option === undefined) return `${word} is no option`;
    const text = option.placeholder === undefined ? "true" : rest.shift();
    if (text === undefined || option.parse(text) === undefined) return `${word} ${text} is not allowed`;
  }
  return null;
}

/** What npm is asked for is in package.json; the package and its parts have the versions that the documents say. */
function faultOfNpm(words: readonly string[]): string | null {
  const [command = "", ...rest] = words;
  const [script] = command === "run" ? rest : [command];
  if (packageJson.scripts[script as string] !== undefined) {
    return rest.includes("--") ? faultOfOptions(rest.slice(rest.indexOf("--") + 1), DEMO_OPTIONS) : null;
  }
  if (command === "pack" && rest.length === 0) return null;
  const releases = [
    `./inspection-results-service-${packageJson.version}.tgz`,
    `uNetworking/uWebSockets.js#v${packageJson.optionalDependencies["@btc-vision/uwebsockets.js"]}`,
  ];
  const [what] = rest.filter((word) => word !== "--ignore-scripts");
  return command === "install" && releases.includes(what as string) ? null : `npm ${words.join(" ")} is not known`;
}

/** The interface ignores parameters that it does not know: a request with a wrong name would find everything. */
function undeclaredParameters(request: string, { paths }: InterfaceDocument): string[] {
  const [, path = "", query = ""] = /\$BASE(\/[^\s"?]*)\??([^\s"]*)/.exec(request) ?? [];
  const parts = path.split("/");
  const fits = (template: string): boolean => {
    const expected = template.split("/");
    return expected.length === parts.length && expected.every((part, at) => part.startsWith("{") || part === parts[at]);
  };
  const templates = Object.keys(paths).filter(fits);
  const known = templates.flatMap((template) => paths[template]?.get?.parameters ?? []).map(({ name }) => name);
  return [...new URLSearchParams(query).keys()].filter((name) => !known.includes(name));
}

/** A folder that looks like a clone in which the service runs. */
function cloneFolder(t: Test, service: ServiceProcess): string {
  const folder = temporaryDirectory(t);
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(resolve("."), join(folder, "node_modules/inspection-results-service"));
  symlinkSync(resolve("dist"), join(folder, "dist"));
  symlinkSync(service.dataDirectory, join(folder, "demo-data"));
  writeFileSync(join(folder, "cert.pem"), RECEIVER_CERTIFICATE);
  writeFileSync(join(folder, "key.pem"), RECEIVER_PRIVATE_KEY);
  return folder;
}

class Reader {
  readonly #t: Test;
  readonly #folder: string;
  readonly #service: ServiceProcess;
  readonly #names: Names;
  readonly #receiverPort: string;
  readonly #document: InterfaceDocument;
  /** Commands to run when the service has ended. */
  readonly #later: string[][] = [];
  /** A command that stands in two documents is tried once. */
  readonly #tried = new Set<string>();

  constructor(t: Test, folder: string, service: ServiceProcess, document: InterfaceDocument, names: Names) {
    [this.#t, this.#folder, this.#service, this.#document] = [t, folder, service, document];
    [this.#names, this.#receiverPort] = [names, names.RECEIVER_PORT as string];
  }

  async types({ text, status }: Command): Promise<void> {
    if (!text.includes(" -X ") && this.#tried.has(text)) return;
    this.#tried.add(text);
    const words = text.split(/\s+/);
    const [, name, value] = /^([A-Z]+)=(\S+)$/.exec(text) ?? [];
    if (name !== undefined) this.#names[name] = this.#here(value as string);
    else if (text.startsWith("curl -N ")) await this.#follows(text);
    else if (words[0] === "curl") await this.#requests(text, status);
    else if (words[0] === "npm") this.#t.equal(faultOfNpm(words.slice(1)), null, text);
    else if (words[0] === "npx" && words[1] === "inspection-service") await this.#commands(words.slice(2));
    else if (words[0] === "node") this.#scripts(words.slice(1));
    else this.#t.fail(`nobody knows how to try: ${text}`);
  }

  async afterTheEnd(): Promise<void> {
    for (const words of this.#later) {
      const { code, stderr } = await runCommand(words, {}, process.execPath, this.#folder);
      this.#t.equal(code, 0, `${words.join(" ")} ${stderr}`);
    }
  }

  #here(text: string): string {
    return text
      .replaceAll(URL_IN_DOCUMENTS, `http://127.0.0.1:${this.#service.port}`)
      .replaceAll(DATA_IN_DOCUMENTS, this.#service.dataDirectory)
      .replaceAll(BACKUP_IN_DOCUMENTS, `${this.#folder}/backup-`)
      .replaceAll(RECEIVER_PORT, this.#receiverPort)
      .replaceAll(/\$([A-Z]+)/g, (all, name: string) => (text.startsWith("curl") ? all : (this.#names[name] ?? all)));
  }

  async #requests(text: string, expected: number | null): Promise<void> {
    this.#t.same(undeclaredParameters(text, this.#document), [], text);
    const { code, stdout, stderr } = await runInShell(this.#here(text), this.#folder, this.#names);
    const status = Number(/\d{3}$/.exec(stderr)?.[0]);
    this.#t.ok(expected === null ? status >= 200 && status < 300 : status === expected, `${status} ${text}\n${stdout}`);
    this.#t.equal(code, 0, `${text}\n${stderr}`);
    if (text.includes("-X POST") && stdout.startsWith("{")) this.#learns(JSON.parse(stdout) as Record<string, unknown>);
  }

  /** Follows a request whose answer does not end, until its first event has come. */
  async #follows(text: string): Promise<void> {
    this.#t.same(undeclaredParameters(text, this.#document), [], text);
    const command = `exec ${this.#here(text).replace("curl", "curl -q -sS --noproxy '*'")}`;
    const curl = spawn("bash", ["--norc", "-c", command], { env: { ...process.env, ...this.#names } });
    let said = "";
    for await (const chunk of curl.stdout) {
      said += chunk;
      if (said.includes("event: ready")) break;
    }
    curl.kill();
    this.#t.match(said, /^event: ready$/m, text);
  }

  /** Ids that the documents go on with. */
  #learns(answer: Record<string, unknown>): void {
    if ("has_secret" in answer) this.#names.WEBHOOK = String(answer.id);
    if ("resend_id" in answer) this.#names.RESEND = String(answer.resend_id);
    if ("delivery_id" in answer) {
      this.#names.DELIVERY = String(answer.delivery_id);
      this.#t.match(answer, { delivered: true, status_code: 204 }, "the receiver of the README takes it");
    }
  }

  /** A word for the script of the tests that chooses no test file is out of date. */
  #scripts([script = "", ...words]: string[]): void {
    this.#t.ok(existsSync(script), script);
    if (script !== TEST_SCRIPT) return;
    const isUnknown = (word: string) => !TEST_FILES.some((path) => path.includes(word));
    this.#t.same(words.filter(isUnknown), [], `words that choose tests: ${words.join(" ")}`);
  }

  async #serves(text: string): Promise<void> {
    if (text.includes("--front uws") && !HAS_UWS)
      return this.#t.comment(`not started, as no build loads here: ${text}`);
    const args = text.replaceAll(/ --(?:port|data) \S+/g, "").split(" ");
    const serving = await ServiceProcess.start({ args, cwd: this.#folder });
    const { code } = await serving.end();
    this.#t.equal(code, 0, text);
    await serving.dispose();
  }

  async #commands(words: string[]): Promise<void> {
    const [command = "", ...rest] = words.map((word) => this.#here(word));
    if (SERVING_COMMANDS.includes(command)) await this.#serves([command, ...rest].join(" "));
    else if (STORE_COMMANDS.includes(command)) this.#later.push([command, ...rest]);
    else {
      const { code, stdout, stderr } = await runCommand([command, ...rest], {}, process.execPath, this.#folder);
      this.#t.equal(code, 0, `${words.join(" ")} ${stderr}`);
      if (rest[0] === "add") this.#names.KEY = stdout.trim();
    }
  }
}

const read = (path: string): string => readFileSync(path, "utf8");

const curlMissing = spawnSync("curl", ["--version"]).error !== undefined && "curl is not installed";

t.test("what the documents say to type works", { skip: curlMissing }, async (t) => {
  const service = await ServiceProcess.startFor(t);
  const receiverPort = await freePort();
  const names = { ...(await documentedCell(service)), RECEIVER_PORT: String(receiverPort) };
  const folder = cloneFolder(t, service);
  for (const { name, text } of fencesOf(read(README)).filter(({ language }) => language === "js")) {
    writeFileSync(join(folder, name), text.replaceAll(RECEIVER_PORT, String(receiverPort)));
    t.ok(read(README).includes(`\`node ${name}\``), `${name} is started as README.md says`);
  }

  const produced = await runInShell("node producer.mjs", folder, {});
  t.same(produced, { code: 0, stdout: "", stderr: "" });
  const list = await fetch(`http://127.0.0.1:${service.port}/runs?serial_number=SN-1&quality_status=passed`);
  t.match(await list.json(), { total: 1 }, "the producer's run");

  const receiver = spawn(process.execPath, ["receiver.mjs"], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  t.teardown(() => receiver.kill());
  let said = "";
  receiver.stdout.on("data", (chunk: Buffer) => (said += chunk));
  const refused = await untilAnswered(`http://127.0.0.1:${receiverPort}/`, receiver);
  t.equal(refused, 401, "the receiver takes nothing without a signature");

  const openapi = await fetch(`http://127.0.0.1:${service.port}/openapi.json`);
  const document = (await openapi.json()) as InterfaceDocument;
  const reader = new Reader(t, folder, service, document, names);
  for (const path of DOCUMENTS) for (const command of commandsOf(read(path))) await reader.types(command);
  t.match(said, /^WebhookTest$/m, "the receiver tells of the event");
  await pathsAreThere(t, service, document);
  t.match(await service.end(), { code: 0 });
  await reader.afterTheEnd();
});

/** A POST's status, once somebody listens. */
async function untilAnswered(url: string, server: ChildProcess): Promise<number> {
  while (server.exitCode === null) {
    try {
      return (await fetch(url, { method: "POST", body: "{}" })).status;
    } catch (error) {
      if ((error as { cause?: { code?: string } }).cause?.code !== "ECONNREFUSED") throw error;
      await pause(POLL_MS);
    }
  }
  throw new Error(`it ended with ${server.exitCode} before it answered ${url}`);
}

/** Paths that stand in the prose of README and guide. */
async function pathsAreThere(t: Test, service: ServiceProcess, { paths }: InterfaceDocument): Promise<void> {
  const base = `http://127.0.0.1:${service.port}`;
  const roots = new Set([...Object.keys(paths), "/docs"].map((path) => path.split("/")[1]));
  const named = [README, GUIDE].flatMap((path) => inlineCodeOf(read(path)));
  const checked = named.filter((code) => code.startsWith("/") && roots.has(code.split("/")[1]));
  t.ok(checked.length > 5, `${checked.length} paths`);
  for (const path of new Set(checked)) {
    const isThere = path in paths || (!path.includes("{") && (await fetch(base + path)).ok);
    t.ok(isThere, path);
  }
}

t.test("a test runs the commands of each document that has some", (t) => {
  const withCommands = [README, ...ALL_DOCUMENTS].filter((path) => commandsOf(read(path)).length > 0);
  t.same(withCommands.sort(), [...new Set([...DOCUMENTS, ...Object.keys(RUN_ELSEWHERE)])].sort());
  for (const [path, name] of Object.entries(RUN_ELSEWHERE)) {
    const source = read(`test/contract/${name}.test.ts`);
    t.ok(source.includes(`"${path}"`) || source.includes(`"${dirname(path)}"`), `${name} reads ${path}`);
  }
  t.end();
});

t.test("options, variables and units in all documents", async (t) => {
  const streams = plantStreams({ replicas: 3, captureDays: 1, captureBytes: null }).map(({ name }) => name);
  const variables = new Set([...[...OPTION_NAMES].map(environmentName), ...streams]);
  for (const path of [README, ...ALL_DOCUMENTS]) {
    for (const code of inlineCodeOf(read(path))) {
      for (const [, name] of code.matchAll(/(?:^|\s)--([a-z][a-z-]*)/g)) {
        t.ok(OPTION_NAMES.has(name as string) || OTHER_OPTIONS.includes(name as string), `${path}: --${name}`);
      }
      if (/^npm (?!install$)/.test(code)) t.equal(faultOfNpm(code.split(" ").slice(1)), null, `${path}: ${code}`);
      for (const [name] of code.matchAll(/INSPECTION_[A-Z_]+/g)) t.ok(variables.has(name), `${path}: ${name}`);
    }
    for (const { language, text } of fencesOf(read(path))) {
      const start = language === "ini" ? /^ExecStart=\S*\/inspection-service serve (.*)$/m.exec(text)?.[1] : undefined;
      if (start !== undefined) t.equal(faultOfOptions(start.split(" "), SERVE_OPTIONS), null, `${path}: ${start}`);
    }
  }
});

t.test("the guide makes millimetres by the same lines as the interface's document", async (t) => {
  const lines = fencesOf(read(GUIDE)).find(({ language }) => language === "python")?.text;
  t.ok(lines !== undefined && NPY_IN_MILLIMETRES.includes(lines));
});
