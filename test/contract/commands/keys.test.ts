import {
  chmodSync,
  chownSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import t from "tap";
import { rawRequest } from "../../helpers/http/raw-http.js";
import { listOf } from "../../helpers/list-of.js";
import { giveToOther, runAsOther, runsAsOther } from "../../helpers/process/other-account.js";
import { type Ended, runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { isFullSize, sized } from "../../helpers/test-size.js";
import { until } from "../../helpers/until.js";

const keysOf = (file: string) => (JSON.parse(readFileSync(file, "utf8")) as { keys: { id: string }[] }).keys;

t.test("commands that change one file at once lose nothing, and leave no other file", async (t) => {
  const folder = temporaryDirectory(t);
  const file = join(folder, "keys.json");
  const link = join(folder, "link.json");
  symlinkSync("keys.json", link);
  const first = (await runCommand(["keys", "add", "--file", file])).stdout;
  const adding = Array.from({ length: sized(4, 9) }, (_, n) =>
    runCommand(["keys", "add", "--file", n % 2 === 0 ? file : link]),
  );
  const removing = runCommand(["keys", "remove", "--file", link, "--id", first.slice(4, 16)]);
  const printed = await Promise.all(adding);
  t.same((await removing).code, 0);
  const ids = printed.map(({ stdout }) => stdout.slice(4, 16));
  t.same(new Set(keysOf(file).map(({ id }) => id)), new Set(ids));
  t.same(readdirSync(folder).sort(), ["keys.json", "link.json"]);
  t.ok(lstatSync(link).isSymbolicLink(), "a link stays one");
});

t.test("a key has a name if it is given one", async (t) => {
  const file = join(temporaryDirectory(t), "keys.json");
  await runCommand(["keys", "add", "--file", file, "--name", "MES Halle 3 – Prüfer"]);
  await runCommand(["keys", "add", "--file", file, "--scope", "manage"]);
  const listed = await runCommand(["keys", "list", "--file", file]);
  t.match(listed.stdout, /^[0-9a-f]{12} read \S+ MES Halle 3 – Prüfer\n[0-9a-f]{12} manage \S+\n$/);
  // As an earlier release wrote it.
  const { keys } = JSON.parse(readFileSync(file, "utf8")) as { keys: Record<string, unknown>[] };
  writeFileSync(file, JSON.stringify({ keys: keys.map(({ name, ...rest }) => rest) }));
  t.match((await runCommand(["keys", "list", "--file", file])).stdout, /^[0-9a-f]{12} read \S+\n/);
  const wrongNames = ["two\nlines", "x".repeat(101), "\u202eturned", ""];
  for (const wrong of isFullSize ? wrongNames : wrongNames.slice(0, 1)) {
    const refused = await runCommand(["keys", "add", "--file", file, `--name=${wrong}`]);
    t.equal(refused.code, 1, JSON.stringify(wrong));
    t.match(refused.stderr, /--name/);
  }
  t.equal(keysOf(file).length, 2);
});

t.test("the file keeps its mode", async (t) => {
  const file = join(temporaryDirectory(t), "keys.json");
  await runCommand(["keys", "add", "--file", file]);
  t.equal(statSync(file).mode & 0o7777, 0o600, "a new one is for its owner");
  chmodSync(file, 0o604);
  await runCommand(["keys", "add", "--file", file]);
  t.equal(statSync(file).mode & 0o7777, 0o604);
});

t.test(
  "the file keeps its owner when root changes it; an account that cannot do that changes nothing",
  { skip: process.getuid?.() === 0 ? runsAsOther() : "the tests are not root's" },
  async (t) => {
    const folder = temporaryDirectory(t);
    const file = join(folder, "keys.json");
    await runCommand(["keys", "add", "--file", file]);
    chownSync(file, 1234, 2345);
    chmodSync(file, 0o660);
    const id = (await runCommand(["keys", "add", "--file", file])).stdout.slice(4, 16);
    await runCommand(["keys", "remove", "--file", file, "--id", id]);
    const { uid, gid, mode } = statSync(file);
    t.same([uid, gid, mode & 0o7777], [1234, 2345, 0o660]);
    t.equal(keysOf(file).length, 1);

    giveToOther(folder);
    chownSync(file, 1234, 2345);
    chmodSync(file, 0o666);
    const before = readFileSync(file, "utf8");
    const refused = await runAsOther("dist/http/main.js", ["keys", "add", "--file", file]);
    t.equal(refused.code, 1);
    t.match(refused.stderr, /EPERM.*belongs to account 1234/);
    t.equal(readFileSync(file, "utf8"), before);
    t.same(readdirSync(folder), ["keys.json"]);
  },
);

t.test("while the key file is damaged, all keys are refused and /health says why, until it is repaired", async (t) => {
  const folder = temporaryDirectory(t);
  const file = join(folder, "keys of the line.json");
  const key = (await runCommand(["keys", "add", "--file", file])).stdout.trim();
  const right = readFileSync(file);
  const service = await ServiceProcess.startFor(t, { args: ["serve", "--api-keys", file] });
  const ask = async (path: string) =>
    rawRequest(service.port, `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  const untilStatus = (status: number) =>
    until(String(status), async () => (await ask("/programs"))?.status === status);
  const health = async () => (await ask("/health"))?.json() as { status: string; components: Record<string, unknown> };
  await untilStatus(200);
  t.equal((await health()).status, "healthy");
  truncateSync(file, right.length / 2);
  await untilStatus(401);
  t.match((await ask("/runs"))?.json(), { code: "unauthorized", message: /key file/ });
  t.match(await health(), { status: "degraded", components: { recorder: { status: "degraded" } } });
  t.match(JSON.stringify(await health()), /since 20\d\d-.*the key file keys of the line\.json.*is not JSON/);
  writeFileSync(file, right);
  await untilStatus(200);
  const { stderr } = (await service.end()) as Ended;
  const lines = stderr
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { msg: string; level: number });
  const told = lines.filter(({ msg }) => msg.includes("the key file cannot be used"));
  t.match(told, listOf({ level: 50 }), "once");
  t.notOk(stderr.includes(key.slice(17)));
});
