/** Does what workers/plant/PLANT.md says, word by word: its configurations start real servers, and its commands are run. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import t, { type Test } from "tap";
import { startDemoCell } from "../../../workers/demo-cell/demo-cell-process.js";
import { MarkdownPage, tableRows } from "../../helpers/documents/markdown-page.js";
import { RECEIVER_CERTIFICATE, RECEIVER_PRIVATE_KEY, TEST_AUTHORITY } from "../../helpers/http/test-authority.js";
import { NatsAccounts } from "../../helpers/plant/nats-accounts.js";
import { noNatsServer, SERVER } from "../../helpers/plant/nats-server.js";
import { getJson, until, untilCaughtUp, untilShipped } from "../../helpers/plant/plant-processes.js";
import { type Ended, runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { freePort } from "../../helpers/system/free-port.js";

const PAGE = new MarkdownPage("workers/plant/PLANT.md");
const HUB_PAGE = new MarkdownPage("http/hub/README.md");
const ADDRESSES = ["10.0.0.5:4222", "10.0.0.6:4222", "10.0.0.7:4222", "127.0.0.1:4222", "10.0.0.5:7422"];
const ROUTES = ["10.0.0.5:6222", "10.0.0.6:6222", "10.0.0.7:6222"];
const PLACE = /(?:\d+\.){3}\d+:\d{4}|\/(?:etc|var)\/[a-z/]*[a-z]/g;
/** How long a command is tried that needs a cluster with a leader. */
const TRIES = 240;

/** The guide's files and commands, with the addresses and folders of this test in place of those that it prints. */
class Guide {
  readonly folder: string;
  readonly #t: Test;
  readonly #ports: ReadonlyMap<string, number>;
  readonly servers: ChildProcess[] = [];

  private constructor(t: Test, ports: ReadonlyMap<string, number>) {
    this.#t = t;
    this.#ports = ports;
    this.folder = temporaryDirectory(t);
    mkdirSync(join(this.folder, "etc/nats"), { recursive: true });
  }

  static async for(t: Test): Promise<Guide> {
    const ports = new Map<string, number>();
    for (const address of [...ADDRESSES, ...ROUTES]) ports.set(address, await freePort());
    return new Guide(t, ports);
  }

  /** @param machine which of the three it is for: 5, 6 or 7 */
  #local(text: string, machine: number): string {
    return text.replace(PLACE, (place) => {
      if (place.startsWith("/"))
        return join(this.folder, place.startsWith("/var/lib/nats") ? `${place}-${machine}` : place);
      const port = this.#ports.get(place.replace(/^0\.0\.0\.0/, `10.0.0.${machine}`));
      if (port === undefined) throw new Error(`the guide has an address that is not known here: ${place}`);
      return `127.0.0.1:${port}`;
    });
  }

  /** Writes the section's file to the place that its first line names. @returns its path */
  write(heading: string, machine = 5): string {
    const [block = ""] = PAGE.blocks(heading, "conf");
    const path = this.#local(/^\/\/ (\S+)$/m.exec(block)?.[1] ?? "", machine).replace(
      "plant.conf",
      `plant-${machine}.conf`,
    );
    writeFileSync(path, this.#local(block, machine).replace("plant-1", `plant-${machine}`));
    return path;
  }

  /** The section's commands, each as its words. */
  commands(heading: string, page = PAGE): string[][] {
    const lines = page
      .blocks(heading, "sh")
      .join("\n")
      .replaceAll(/^npx /gm, "")
      .replaceAll("--port 8000", "--port 0")
      .replaceAll(/\\\n */g, "")
      .split("\n");
    return lines.map((line) => this.#local(line.trim(), 5).split(" ")).filter(([program]) => program !== "");
  }

  async startServer(path: string, port: number): Promise<ChildProcess> {
    const server = spawn(SERVER, ["-c", path, "-l", `${path}.log`], { stdio: "ignore" });
    this.servers.push(server);
    this.#t.teardown(() => server.kill("SIGKILL"));
    await until(this.#t, `a server on port ${port}`, async () => {
      if (server.exitCode !== null) throw new Error(`nats-server ended with ${server.exitCode}: see ${path}.log`);
      return listens(port);
    });
    return server;
  }

  portOf(address: string): number {
    return this.#ports.get(address) as number;
  }

  /** Runs a command; one that serves goes on. */
  async run(words: readonly string[]): Promise<ServiceProcess | Ended | ChildProcess> {
    const [program, command] = words;
    if (program === "nats-server") {
      const path = words.at(-1) as string;
      const isLeaf = path.endsWith("leaf.conf");
      const own = isLeaf ? path : path.replace("plant.conf", "plant-5.conf");
      return this.startServer(own, this.portOf(isLeaf ? "127.0.0.1:4222" : "10.0.0.5:4222"));
    }
    const args = words.slice(1);
    if (command === "serve" || command === "hub") {
      const at = args.indexOf("--data") + 1;
      const dataDirectory = at === 0 ? temporaryDirectory(this.#t) : (args[at] as string);
      return ServiceProcess.startFor(this.#t, { args, dataDirectory });
    }
    const ended = await runCommand(args);
    this.#t.equal(ended.code, 0, `${words.slice(0, 3).join(" ")}: ${ended.stderr}`);
    return ended;
  }

  /** Runs the section's commands in their order. @returns what its `serve` and `hub` are */
  async runAll(heading: string): Promise<{ serve: ServiceProcess; hub: ServiceProcess }> {
    const services: Record<string, unknown> = {};
    for (const words of this.commands(heading)) services[words[1] as string] = await this.run(words);
    return services as { serve: ServiceProcess; hub: ServiceProcess };
  }
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

/** Makes so many runs at the cell and waits until all of its runs are in the plant. */
async function makeRuns(t: Test, cell: ServiceProcess, count: number, all = count): Promise<void> {
  const options = { socketPath: cell.cellSocketPath, seed: all, runs: count, speed: 0 };
  t.equal(await startDemoCell(options, () => {}).exited, 0);
  await untilShipped(t, cell, all);
}

interface Health {
  components: Record<string, { status: string; detail: string | null }>;
}

async function plantOf(service: ServiceProcess): Promise<string> {
  const { components } = await getJson<Health>(service, "/health");
  return `${components.plant?.status}: ${components.plant?.detail}`;
}

const untilPlant = (t: Test, service: ServiceProcess, expected: RegExp) =>
  until(t, String(expected), async () => expected.test(await plantOf(service)));

const totalOf = async (hub: ServiceProcess, cell: string) =>
  (await getJson<{ total: number }>(hub, `/runs?limit=1&cell=${cell}`)).total;

t.test("one machine; compare; a disk dies", { skip: noNatsServer }, async (t) => {
  const guide = await Guide.for(t);
  guide.write("## One machine");
  const { serve, hub } = await guide.runAll("## One machine");
  await makeRuns(t, serve, 2);
  await untilCaughtUp(t, hub, 2);
  const [another = []] = guide.commands("# Hub", HUB_PAGE);
  await untilCaughtUp(t, (await guide.run(another)) as ServiceProcess, 2);
  const [verify = []] = guide.commands("## Compare");
  t.match(await guide.run(verify), { stdout: /, 0 differences\nok\n$/ });
  await serve.end("SIGKILL");
  rmSync(serve.dataDirectory, { recursive: true });
  const [restore = [], acknowledge = []] = guide.commands("## A disk dies");
  t.match(await guide.run(restore), { stdout: /^store \S+ of cell line3-cell7: \d+ records/ });
  const [, , again = []] = guide.commands("## One machine");
  const restored = (await guide.run(again)) as ServiceProcess;
  await untilPlant(t, restored, /^degraded: /);
  await guide.run(acknowledge);
  await untilPlant(t, restored, /^healthy/);
  t.equal((await getJson<{ total: number }>(restored, "/runs")).total, 2);
});

t.test("three machines: the plant goes on without one", { skip: noNatsServer }, async (t) => {
  const guide = await Guide.for(t);
  const paths = [5, 6, 7].map(
    (machine) => [guide.write("## Three machines", machine), `10.0.0.${machine}:4222`] as const,
  );
  await Promise.all(paths.map(([path, address]) => guide.startServer(path, guide.portOf(address))));
  const [init = [], serve = []] = guide.commands("## Three machines");
  // For some seconds the servers have no leader.
  for (let tries = 0; tries < TRIES && (await runCommand(init.slice(1))).code !== 0; tries++) await setTimeout(250);
  t.match(await guide.run(init), { stdout: /INSPECTION_LOG: there already/ });
  const cell = (await guide.run(serve)) as ServiceProcess;
  await makeRuns(t, cell, 1);
  const [first] = guide.servers as [ChildProcess];
  const gone = once(first, "exit");
  first.kill("SIGKILL");
  await gone;
  await makeRuns(t, cell, 1, 2);
  t.comment("2 runs are in the plant, the second one without one of three servers");
});

/** Writes the users of the guide's table, and the file that servers include. @returns what a cell may publish */
function writeAccounts(guide: Guide): void {
  const folder = join(guide.folder, "etc/nats");
  const accounts = new NatsAccounts();
  accounts.writeConfiguration(join(folder, "accounts.conf"));
  const names: Record<string, string[]> = {
    ...{ cell: ["line3-cell7"], hub: ["hub"] },
    ...{ "leaf node": ["line3"], operator: ["operator"] },
  };
  const rows = tableRows(PAGE.section("## Accounts"));
  if (rows.length !== 4) throw new Error("the guide has a user that this test does not know");
  for (const [user = "", subjects = ""] of rows) {
    const allowed = [...subjects.matchAll(/`([^`]+)`/g)].map(([, subject]) => subject as string);
    for (const name of names[user] ?? []) accounts.writeUser(folder, name, allowed);
  }
}

t.test("accounts: a cell cannot write in another one's name", { skip: noNatsServer }, async (t) => {
  const guide = await Guide.for(t);
  writeAccounts(guide);
  guide.write("## Accounts");
  const { serve, hub } = await guide.runAll("## Accounts");
  await makeRuns(t, serve, 1);
  await untilCaughtUp(t, hub, 1);
  const asOther = guide.commands("## Accounts").find(([, command]) => command === "serve") as string[];
  const other = (await guide.run([...asOther.slice(0, -1), "line3-cell8"])) as ServiceProcess;
  t.equal(await startDemoCell({ socketPath: other.cellSocketPath, seed: 1, runs: 1, speed: 0 }, () => {}).exited, 0);
  await untilPlant(t, other, /^degraded: .*this user may not publish on inspection\.log\.line3-cell8\./);
  t.strictSame([await totalOf(hub, "line3-cell7"), await totalOf(hub, "line3-cell8")], [1, 0]);
  const stranger = await runCommand([
    "plant",
    "init",
    "--plant",
    `nats://127.0.0.1:${guide.portOf("10.0.0.5:4222")}`,
    "--capture-days",
    "90",
  ]);
  t.match(stranger.stderr, /^inspection-service: --plant: the server at \S+ refuses the credentials \(.*\)\n$/);
});

t.test("a leaf node at the cell", { skip: noNatsServer }, async (t) => {
  const guide = await Guide.for(t);
  writeAccounts(guide);
  guide.write("## A server at the cell");
  const { serve: alone } = await guide.runAll("## A server at the cell");
  await untilPlant(
    t,
    alone,
    /^degraded: .*the NATS server has no JetStream: .*if it is a leaf node, look at its connection/,
  );
  guide.write("## Accounts");
  const serveWords = guide.commands("## A server at the cell").find(([, command]) => command === "serve") as string[];
  const [server = [], init = [], , hubWords = []] = guide.commands("## Accounts");
  await guide.run(server);
  await guide.run(init);
  const hub = (await guide.run(hubWords)) as ServiceProcess;
  // It would look for the plant again within half a minute.
  await alone.end();
  const serve = (await guide.run(serveWords)) as ServiceProcess;
  await makeRuns(t, serve, 1);
  await untilCaughtUp(t, hub, 1);
  t.equal(await totalOf(hub, "line3-cell7"), 1, "its run came through the leaf node");
});

t.test("TLS, with an authority of one's own", { skip: noNatsServer }, async (t) => {
  const guide = await Guide.for(t);
  const files = { "ca.crt": TEST_AUTHORITY, "server.crt": RECEIVER_CERTIFICATE, "server.key": RECEIVER_PRIVATE_KEY };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(guide.folder, "etc/nats", name), text);
  guide.write("## TLS");
  const { serve } = await guide.runAll("## TLS");
  await makeRuns(t, serve, 1);
  const untrusted =
    guide
      .commands("## TLS")[1]
      ?.slice(1)
      .filter((word) => !/--plant-ca|ca\.crt/.test(word)) ?? [];
  const refused = await runCommand(untrusted);
  t.equal(refused.code, 1);
  t.match(refused.stderr, /^inspection-service: --plant: no server answers at tls:\/\/\S+: .*certificate.*\n$/);
});

t.test("every file and command of the guide is tried", (t) => {
  const tried = ["One machine", "Three machines", "A server at the cell", "Accounts", "TLS", "A disk dies", "Compare"];
  const others = PAGE.headings(2).filter((heading) => !tried.includes(heading));
  for (const heading of others) {
    t.strictSame([...PAGE.blocks(`## ${heading}`, "sh"), ...PAGE.blocks(`## ${heading}`, "conf")], [], heading);
  }
  t.end();
});
