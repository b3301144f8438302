/** The packages are installed, used, upgraded and removed as http/package/README.md says, under a real systemd. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { LISTEN_OPTIONS, SERVE_OPTIONS } from "../../../http/commands/command-options.js";
import { MarkdownPage } from "../../helpers/documents/markdown-page.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { PrivateSystem } from "../../helpers/system/private-system.js";

const page = new MarkdownPage("http/package/README.md");
const backupPage = new MarkdownPage("storage/BACKUP.md");
const storePage = new MarkdownPage("storage/README.md");
const runbook = new MarkdownPage("http/monitoring/RUNBOOK.md");
const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
const PACKAGES = "dist/packages";
const DATA = "/var/lib/inspection-service";
const CONFIG = "/etc/inspection-service/config.json";
/** Names in the page: of a package, and of the one after it. */
const [PAGE_VERSION, PAGE_NEXT, PAGE_ARCHITECTURE] = ["0.2.0", "0.2.1", "amd64"];

const cannotMake =
  (process.platform !== "linux" && "packages are made on Linux") ||
  (spawnSync("dpkg-deb", ["--version"]).status !== 0 && "dpkg-deb is not installed");
const architecture = process.arch === "x64" ? "amd64" : process.arch;
const named = (name: string): string =>
  name.replaceAll(PAGE_VERSION, version).replaceAll(PAGE_ARCHITECTURE, architecture);

/** As a release is compressed, it would take most of the time of these tests. */
const FAST = { ...process.env, DPKG_DEB_COMPRESSOR_TYPE: "gzip", DPKG_DEB_COMPRESSOR_LEVEL: "1" };

/** The files of the service that the present sources make, once for all tests here. */
let made: string | undefined;
function packages(): string {
  made ??= execFileSync(process.execPath, [".ci/package/package.mjs"], { encoding: "utf8", env: FAST });
  return made;
}

/** The same package, as the release after it. */
function nextRelease(t: Test, deb: string): Buffer {
  const folder = join(temporaryDirectory(t), "root");
  execFileSync("dpkg-deb", ["--raw-extract", deb, folder]);
  for (const path of ["DEBIAN/control", "usr/lib/inspection-service/package.json"]) {
    const text = readFileSync(join(folder, path), "utf8");
    writeFileSync(join(folder, path), text.replace(version, PAGE_NEXT));
  }
  const args = ["--root-owner-group", "--build", folder, `${folder}.deb`];
  execFileSync("dpkg-deb", args, { stdio: "pipe", env: FAST });
  return readFileSync(`${folder}.deb`);
}

const PRODUCER = `
import { ProducerClient } from "/usr/lib/inspection-service/dist/workers/cell-link/producer-client.js";
const [, , producer] = process.argv;
const onDisconnected = (reason) => { console.error(reason); process.exit(1); };
const cell = new ProducerClient({ address: { path: "/run/inspection-service/cell.sock" }, producer, onDisconnected });
await cell.welcomed();
const program = "01900000-0000-7000-8000-000000000001";
const run = cell.nextRunId();
await cell.send({ type: "program.put", program: { id: program, name: "Seam", status: "active", steps: [] } });
await cell.send({ type: "run.create", id: run, program_id: program, serial_number: "SN-1" });
await cell.send({ type: "run.start", id: run });
await cell.deliver({ type: "run.finish", id: run });
console.log(run);
process.exit(0);
`;

class Operator {
  readonly #t: Test;
  readonly system: PrivateSystem;

  constructor(t: Test, system: PrivateSystem) {
    [this.#t, this.system] = [t, system];
  }

  /** Runs commands that must succeed. */
  async does(commands: string): Promise<string> {
    const { code, stdout, stderr } = await this.system.run(commands);
    if (code !== 0) throw new Error(`${commands}: ${code}\n${stdout}${stderr}`);
    return stdout;
  }

  /** What the page tells to type below a heading, one after the other; @returns what was printed */
  async reads(heading: string, options: { only?: RegExp; of?: MarkdownPage } = {}): Promise<string> {
    let printed = "";
    const commands = (options.of ?? page).blocks(heading, "sh").flatMap((block) => block.trim().split("\n"));
    for (const command of commands.filter((line) => options.only?.test(line) ?? true)) {
      this.#t.comment(command);
      const { code, stdout, stderr } = await this.system.run(named(command).replace("apt-get", "apt-get -y"));
      this.#t.equal(code, 0, `${command}\n${stdout}${stderr}`);
      printed += stdout;
    }
    this.#t.ok(commands.length > 0, heading);
    return printed;
  }

  async runs(): Promise<number> {
    const answer = await this.does("curl -sf http://127.0.0.1:8000/runs");
    return (JSON.parse(answer) as { total: number }).total;
  }

  async produces(account: string): Promise<{ code: number; stderr: string }> {
    const as = `setpriv --reuid ${account} --regid ${account} --init-groups`;
    return this.system.run(`${as} node /srv/producer.mjs ${account}`);
  }

  /** Waits until the command prints this. */
  async until(command: string, pattern: RegExp): Promise<void> {
    while (!pattern.test((await this.system.run(command)).stdout)) await this.system.run("sleep 0.1");
  }
}

const NODE_VERSION = ["dpkg-query", "--show", "--showformat=$" + "{Version}", "nodejs"] as const;

function noNode(): string | false {
  const found = spawnSync(NODE_VERSION[0], NODE_VERSION.slice(1), { encoding: "utf8" }).stdout;
  const isNew = found !== "" && spawnSync("dpkg", ["--compare-versions", found, "ge", "20.19"]).status === 0;
  return !isNew && `the package nodejs of this machine is not 20.19 or newer: ${found || "none"}`;
}

const cannotInstall = cannotMake || PrivateSystem.missing() || noNode();
if (cannotInstall) t.comment(`installation is not tested: ${cannotInstall}`);

t.test("the files of the packages", { skip: cannotMake }, async (t) => {
  packages();
  const expected = page.text.matchAll(/^\| `(inspection-service_[^`]*)` \|/gm);
  t.same(readdirSync(PACKAGES).sort(), [...expected].map(([, name]) => named(name as string)).sort());
  const deb = join(PACKAGES, named("inspection-service_0.2.0_amd64.deb"));
  const list = execFileSync("dpkg-deb", ["--contents", deb], { encoding: "utf8", maxBuffer: 1 << 26 });
  const paths = list.trim().split("\n");
  t.same(
    paths.filter((line) => !/^[^ ]+ root\/root /.test(line)),
    [],
    "all belong to root",
  );
  t.same(
    paths.filter((line) => /^[^l].{4}w|^[^l].{7}w/.test(line)),
    [],
    "nobody else may write",
  );
  t.same(
    paths.filter((line) => /uws_(darwin|win32)|_(93|108)\.node|\/(tap|typescript|vite)\//.test(line)),
    [],
  );
  t.ok(paths.some((line) => line.includes(`uws_linux_${process.arch}_137.node`)));
  const sbom = JSON.parse(readFileSync(join(PACKAGES, named("inspection-service_0.2.0_amd64.cdx.json")), "utf8")) as {
    metadata: { component: { name: string; version: string } };
    components: { name: string; version: string }[];
  };
  t.match(sbom.metadata.component, { name: "inspection-service", version });
  const installed = paths.flatMap((line) => /node_modules\/((?:@[^/]+\/)?[^/]+)\/package\.json$/.exec(line)?.[1] ?? []);
  const listed = sbom.components.map(({ name }) => name);
  t.same([...new Set(listed)].sort(), [...new Set(installed)].sort(), "the SBOM lists what is in it");
});

t.test("the manual page says what --help says", { skip: cannotMake }, async (t) => {
  packages();
  const folder = temporaryDirectory(t);
  execFileSync("tar", ["-C", folder, "-xzf", join(PACKAGES, named("inspection-service_0.2.0_linux_amd64.tar.gz"))]);
  const roff = join(folder, "inspection-service/http/package/inspection-service.1");
  t.ok(existsSync(roff));
  const man = spawnSync("man", ["--warnings=w", "--no-hyphenation", "-E", "UTF-8", "-l", roff], {
    encoding: "utf8",
    env: { ...process.env, MANWIDTH: "100", MANPAGER: "cat", LC_ALL: "C.UTF-8" },
  });
  if (man.error !== undefined) return t.comment("man is not installed: not read by it");
  t.equal(man.stderr, "", "no warning of the typesetter");
  const text = man.stdout.replaceAll(/\s+/g, " ");
  for (const [name, { description }] of [SERVE_OPTIONS, LISTEN_OPTIONS].flatMap((one) => Object.entries(one))) {
    t.ok(text.includes(`--${name} `), name);
    t.ok(text.includes(description.replaceAll(/\s+/g, " ")), description);
  }
  for (const command of ["serve", "demo", "listen", "check", "inspect", "export", "keys add", "producers remove"])
    t.ok(text.includes(`inspection-service ${command} [options]`), command);
  t.match(text, /What a crash leaves behind \(a torn tail, files that no record names\)/);
});

t.test("the Debian package: install, write, restart, upgrade, remove, purge", { skip: cannotInstall }, async (t) => {
  packages();
  const system = await PrivateSystem.startFor(t);
  const operator = new Operator(t, system);
  const deb = join(PACKAGES, named("inspection-service_0.2.0_amd64.deb"));
  await system.put(`/root/${named("inspection-service_0.2.0_amd64.deb")}`, readFileSync(deb));
  await system.put(`/root/${named("inspection-service_0.2.1_amd64.deb")}`, nextRelease(t, deb));
  await system.put("/srv/producer.mjs", PRODUCER);
  await operator.does("useradd cell; useradd stranger; chmod 755 /srv");

  await operator.reads("## Debian package");
  t.match(await operator.does("man -P cat inspection-service"), /--cell-socket-access/);
  t.equal(await operator.does(`stat -c '%U %a' ${DATA}`), "inspection 700\n");
  t.match(await operator.does("systemctl show -p StatusText inspection-service"), /listening on http:/);
  t.match(await operator.does("systemctl is-enabled inspection-service"), /^enabled$/m);
  // What its user must not reach.
  const pid = (await operator.does("systemctl show -P MainPID inspection-service")).trim();
  t.match(
    await operator.does(`grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/${pid}/status`),
    /CapEff:\s+0+\nNoNewPrivs:\s+1\nSeccomp:\s+2/,
  );
  t.equal(await operator.does("systemctl show -P LimitNOFILE inspection-service"), "65536\n");

  t.match(await operator.produces("cell"), { code: 1, stderr: /EACCES/ }, "not in the group");
  await operator.reads("### Let a producer write");
  t.match(await operator.produces("cell"), { code: 0 }, "in the group");
  t.match(await operator.produces("stranger"), { code: 1, stderr: /EACCES/ });
  t.equal(await operator.runs(), 1);
  t.match(await system.run(`setpriv --reuid cell --regid cell --init-groups ls ${DATA}`), { code: 2 }, "reads nothing");
  t.match(await operator.reads("### Check the results"), /^ok/m);

  await isRestored(t, operator);
  await isMoved(t, operator);
  await restartsByItself(t, operator);
  await upgradesAndGoes(t, operator);
});

/** As the page about backups says. What was written after the backup is gone. */
async function isRestored(t: Test, operator: Operator): Promise<void> {
  await operator.does("rm -rf /backup; mkdir /backup");
  t.match(await operator.reads("## Back up", { of: backupPage }), /\nok\n$/, "while it is served");
  t.match(await operator.produces("cell"), { code: 0 });
  t.equal(await operator.runs(), 2);
  t.match(await operator.reads("## Restore", { of: backupPage }), /\nok\n$/);
  t.equal(await operator.runs(), 1);
  t.equal(await operator.does(`stat -c '%U %a' ${DATA}`), "inspection 700\n");
  t.match(await operator.reads("## A wrong clock", { of: storePage }), /clock: not changed/);
  t.match(await operator.reads("# Runbook", { of: runbook }), /"status":"healthy"/);
  await operator.does(`rm -r ${DATA}-before /backup`);
}

/** As the same page says. The same system is the new computer: its store is away, and the account has another number. */
async function isMoved(t: Test, operator: Operator): Promise<void> {
  const heading = "## Move to another computer";
  await operator.reads(heading, { of: backupPage, only: /systemctl stop|tar .* -c/ });
  await operator.does(`mv ${DATA} ${DATA}-old; usermod --uid 4321 inspection`);
  t.match(await operator.reads(heading, { of: backupPage, only: /tar .* -x|chown|check|systemctl start/ }), /\nok\n$/);
  t.equal(await operator.runs(), 1);
  t.equal(await operator.does(`stat -c '%U %u %a' ${DATA} | sort -u`), "inspection 4321 700\n");
  await operator.does(`rm -r ${DATA}-old`);
}

/** By a kill, and by the watchdog when it hangs. */
async function restartsByItself(t: Test, operator: Operator): Promise<void> {
  const unit = "inspection-service";
  await operator.does(`systemctl kill -s KILL --kill-who=main ${unit}`);
  await operator.until(`systemctl show -P NRestarts ${unit}; systemctl is-active ${unit}`, /^1\nactive$/m);
  await operator.does(`mkdir -p /etc/systemd/system/${unit}.service.d`);
  await operator.does(`printf '[Service]\\nWatchdogSec=2\\n' >/etc/systemd/system/${unit}.service.d/short.conf`);
  await operator.does(
    `systemctl daemon-reload; systemctl restart ${unit}; systemctl kill -s STOP --kill-who=main ${unit}`,
  );
  await operator.until(`systemctl show -P NRestarts ${unit}; systemctl is-active ${unit}`, /^1\nactive$/m);
  t.match(await operator.does(`journalctl -u ${unit} --no-pager`), /Watchdog timeout/);
  await operator.does(
    `rm -r /etc/systemd/system/${unit}.service.d; systemctl daemon-reload; systemctl restart ${unit}`,
  );
  t.equal(await operator.runs(), 1);
}

async function upgradesAndGoes(t: Test, operator: Operator): Promise<void> {
  const { system } = operator;
  const keys = "### Let other computers read";
  const key = (await operator.reads(keys, { only: /keys|chgrp|chmod/ })).trim();
  const [config] = page.blocks(keys, "json");
  await system.put(CONFIG, config as string);
  await operator.reads(keys, { only: /restart/ });
  t.match(await system.run("curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8000/runs"), { stdout: "401" });
  const asked = `curl -sf -H 'Authorization: Bearer ${key}' http://127.0.0.1:8000`;
  t.match(JSON.parse(await operator.does(`${asked}/runs`)), { total: 1 });

  const remove = "### Upgrade and remove";
  await operator.reads(remove, { only: /0\.2\.1/ });
  t.match(
    JSON.parse(await operator.does(`${asked}/system/version`)),
    { "service-version": PAGE_NEXT },
    "the new one serves",
  );
  t.match(JSON.parse(await operator.does(`${asked}/runs`)), { total: 1 }, "data are kept");
  t.equal(await operator.does(`cat ${CONFIG}`), config, "options are kept");

  await operator.reads(remove, { only: /apt-get remove/ });
  t.match(await system.run("systemctl is-active inspection-service"), { stdout: /inactive/ });
  t.match(await system.run("command -v inspection-service"), { code: 1 });
  t.match(await operator.does(`ls ${DATA} ${CONFIG}`), /meta/);
  const purged = await operator.reads(remove, { only: /apt-get purge/ });
  t.match(purged, new RegExp(`the results stay in ${DATA}; to delete them: rm -r ${DATA}`));
  t.match(await system.run("ls /etc/inspection-service"), { code: 2 });
  t.match(await operator.does(`stat -c %U ${DATA}/meta`), /^inspection$/m, "results stay");
  t.equal(
    await operator.does(
      "find / -xdev \\( -path /root -o -path /work -o -path /tmp -o -path /proc \\) -prune -o -name '*inspection-service*' -newer /srv/producer.mjs -print",
    ),
    `${DATA}\n`,
  );
}

t.test("the tarball serves under systemd, as the page says", { skip: cannotInstall }, async (t) => {
  packages();
  const system = await PrivateSystem.startFor(t);
  const operator = new Operator(t, system);
  const tarball = named("inspection-service_0.2.0_linux_amd64.tar.gz");
  await system.put(`/root/${tarball}`, readFileSync(join(PACKAGES, tarball)));
  t.match(await operator.reads("## Tarball"), new RegExp(`^${version.replaceAll(".", "\\.")}$`, "m"));
  t.match(JSON.parse(await operator.does("curl -sf http://127.0.0.1:8000/system/version")), {
    "service-version": version,
  });
});
