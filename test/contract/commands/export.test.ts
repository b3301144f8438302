import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { exportRun } from "../../../http/commands/store/export-command.js";
import { capturePath } from "../../../storage/captures/capture-path.js";
import {
  PROCESSED_FORMATS as FORMATS,
  IMAGE,
  type KeptRun,
  PROCESSED_BYTES,
  REPORT,
  runWithCaptures,
  untilAllFormats,
} from "../../helpers/captures/kept-captures.js";
import { mountDisk, mountsDisks } from "../../helpers/disk/small-disk.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { isFullSize } from "../../helpers/test-size.js";

const json = (path: string) => JSON.parse(readFileSync(path, "utf8"));
const exportArgs = (data: string, run: string, to: string) => ["export", "--data", data, "--run", run, "--to", to];
/** Longer as a file's name than a file system takes. */
const LONG_NAME = `${"測".repeat(100)}.pdf`;

t.test("export writes the interface's answers with relative links, and the bytes that are there", async (t) => {
  const service = await ServiceProcess.startFor(t, { args: ["serve", "--retain-bytes", String(PROCESSED_BYTES)] });
  const data = service.dataDirectory;
  const client = new ContractClient(t, service.port);
  const producer = await RawProducer.connect({ path: service.cellSocketPath }, "controller");
  const { removed, whole, active } = await threeRuns(producer);
  const file = (name: string) => client.raw("GET", `/runs/${whole.id}/files/${encodeURIComponent(name)}`);
  const npy = `frame-${whole.frameId}.npy`;
  for (let isRemoved = false; !isRemoved; ) {
    isRemoved = (await client.raw("GET", `/runs/${removed.id}/files/marked.png`)).status === 410;
  }
  await untilAllFormats(client, active);
  const served = new Map<string, Buffer>();
  const made = FORMATS.map((format) => `frame-${whole.frameId}.${format}`);
  for (const name of [...made, "report.pdf", "marked.png", "empty.pdf"]) served.set(name, (await file(name)).body);
  t.equal(served.get("empty.pdf")?.length, 0, "a file without bytes is a file");
  const answers = {
    "run.json": await client.get("/runs/{run_id}", { path: { run_id: whole.id } }),
    "quality-report.json": await client.get("/runs/{run_id}/quality-report", { path: { run_id: whole.id } }),
    "defects.json": await client.get("/runs/{run_id}/defects", { path: { run_id: whole.id } }),
    "files.json": await client.get("/runs/{run_id}/files", { path: { run_id: whole.id } }),
  };
  const to = join(data, "out", "one");
  const early = join(data, "out", "served");
  t.match(await runCommand(exportArgs(data, whole.id, early)), { code: 0, stderr: "" }, "also while it is served");
  t.same(
    json(join(early, "files.json")),
    JSON.parse(JSON.stringify(answers["files.json"]).replaceAll('"http://cell:8000/', '"/')),
  );
  await service.end();

  const exported = await runCommand(exportArgs(data, whole.id, to));
  t.match(exported, { code: 0, stderr: "" });
  t.match(exported.stdout, /9 files, \d+ bytes in /);
  t.match(exported.stdout, /^files\/file-\d is "測/m, "a name that no file can have is said");
  t.same(readdirSync(to).sort(), ["defects.json", "files", "files.json", "quality-report.json", "run.json"]);
  const relative = (value: unknown) => JSON.parse(JSON.stringify(value).replaceAll('"http://cell:8000/', '"/'));
  for (const [name, answer] of Object.entries(answers)) t.same(json(join(to, name)), relative(answer), name);
  t.equal(readdirSync(join(to, "files")).length, 9);
  for (const [name, bytes] of served) t.same(readFileSync(join(to, "files", name)), bytes, name);
  t.same(readFileSync(join(to, "files", "marked.png")), IMAGE);
  t.equal(
    readFileSync(join(to, "files", npy))
      .subarray(1, 6)
      .toString(),
    "NUMPY",
  );

  const again = await runCommand(exportArgs(data, whole.id, to));
  t.match(again, { code: 1, stderr: /is not empty; nothing is overwritten/ });
  const empty = join(data, "out", "empty");
  mkdirSync(empty);
  t.match(await runCommand(exportArgs(data, removed.id, empty)), { code: 0, stdout: /6 files that retention removed/ });
  t.same(readdirSync(join(empty, "files")), ["report.pdf"], "removed files are in files.json only");
  t.equal(
    json(join(empty, "files.json")).filter((entry: { deleted_at: unknown }) => entry.deleted_at !== null).length,
    6,
  );
  const ofActive = await runCommand(exportArgs(data, active.id, join(data, "out", "active")));
  t.match(ofActive, { code: 0, stdout: /\(running\): 7 files/ });

  await refusesUse(t, data, whole, to);
  t.notOk(existsSync(join(data, "x")));
  const environment = { INSPECTION_DATA: data, INSPECTION_RUN: whole.id };
  const file2 = join(data, "options.json");
  writeFileSync(file2, JSON.stringify({ to: join(data, "out", "by-file") }));
  t.match(await runCommand(["export", "--config", file2], environment), { code: 0 });
});

/** One that retention is to take, one with all there is, and one that goes on. */
async function threeRuns(producer: RawProducer): Promise<Record<"removed" | "whole" | "active", KeptRun>> {
  const removed = await runWithCaptures(producer, 1);
  await producer.accept({ type: "run.finish", id: removed.id });
  const whole = await runWithCaptures(producer, 2);
  const check = { type: "check.add", run_id: whole.id, check: { name: "gap", status: "failed", value: 1.5 } };
  await producer.accept(check);
  await producer.accept({ type: "defect.add", run_id: whole.id, defect: { type: "dent", confidence: 0.5 } });
  const put = { type: "file.put", run_id: whole.id, content_type: "application/pdf" };
  await producer.accept({ ...put, name: LONG_NAME }, REPORT);
  await producer.accept({ ...put, name: "empty.pdf" });
  await producer.accept({ type: "run.finish", id: whole.id });
  const active = await runWithCaptures(producer, 3);
  return { removed, whole, active };
}

async function refusesUse(t: Test, data: string, whole: KeptRun, to: string): Promise<void> {
  const usage: [string[], RegExp][] = [
    [["export", "--data", data, "--to", join(data, "x")], /--run is required/],
    [["export", "--data", data, "--run", whole.id], /--to is required/],
    [exportArgs(data, "no-id", join(data, "x")), /--run: "no-id" is not allowed; it must be the id of a run/],
    [exportArgs(data, whole.frameId, join(data, "x")), /has no run/],
    [exportArgs(data, whole.id, join(to, "run.json")), /--to: .*ENOTDIR/],
    [["export", "--data", join(data, "nothing"), "--run", whole.id, "--to", to], /holds no store/],
  ];
  for (const [command, message] of isFullSize ? usage : usage.slice(3, 5)) {
    const ended = await runCommand(command);
    t.equal(ended.code, 1, command.join(" "));
    t.match(ended.stderr, message);
    t.notMatch(ended.stderr, /^\s+at /m);
  }
}

/** A store that nobody serves any more, with one run that has ended. */
async function endedStore(): Promise<{ data: string; run: { id: string } }> {
  const service = await ServiceProcess.startFor(t);
  const producer = await RawProducer.connect({ path: service.cellSocketPath }, "controller");
  const run = await runWithCaptures(producer, 1);
  await producer.accept({ type: "run.finish", id: run.id });
  await service.end();
  return { data: service.dataDirectory, run };
}

let ended: ReturnType<typeof endedStore> | undefined;

t.test("damaged or missing bytes are not exported, and nothing that looks whole is left", async (t) => {
  ended ??= endedStore();
  const { data, run } = await ended;
  const to = join(data, "out");
  const args = exportArgs(data, run.id, to);
  const isRefused = (message: RegExp) => t.rejects(exportRun({ data, run: run.id, to, config: null }), { message });
  const captures = join(data, "captures", capturePath(run.id, "capture"));
  const bytes = readFileSync(captures);
  bytes[3]! ^= 1;
  writeFileSync(captures, bytes);
  t.match(await runCommand(args), { code: 1, stderr: /do not match their CRC; nothing was written/ });
  rmSync(captures);
  await isRefused(/does not exist/);
  bytes[3]! ^= 1;
  writeFileSync(captures, bytes);
  const report = join(data, "captures", capturePath(run.id, "report"));
  const intact = readFileSync(report);
  writeFileSync(report, Buffer.alloc(intact.length));
  await isRefused(/do not match their CRC; the files written so far are in .*out\.incomplete/);
  t.notOk(existsSync(to));
  writeFileSync(report, intact);
  await isRefused(/out\.incomplete is left.*remove it first/);
  rmSync(`${to}.incomplete`, { recursive: true });
  appendFileSync(report, "what was never acknowledged");
  t.match(await runCommand(args), { code: 0, stderr: "" });
  t.same(readFileSync(join(to, "files", "report.pdf")), REPORT);
});

t.test("--to is replaced whole, or refused before anything is written", async (t) => {
  ended ??= endedStore();
  const { data, run } = await ended;
  const within = join(data, "other");
  mkdirSync(join(within, "empty"), { recursive: true });
  symlinkSync("empty", join(within, "link"));
  symlinkSync("nowhere", join(within, "dangling"));
  const intoIt = (to: string, cwd = process.cwd()) =>
    runCommand(exportArgs(data, run.id, to), {}, process.execPath, cwd);
  const refused: [string, string, RegExp][] = [
    [".", join(within, "empty"), /^inspection-service: --to: \. is the current folder: [^\n]*\n$/],
    ["./.", join(within, "empty"), /is the current folder/],
    [join(within, "empty"), join(within, "empty"), /is the current folder/],
    [join(within, "link"), within, /^inspection-service: --to: \S*link is a symbolic link to empty: [^\n]*\n$/],
    [`${join(within, "link")}/`, within, /link is a symbolic link to empty/],
    [join(within, "dangling"), within, /dangling is a symbolic link to nowhere/],
    ["..", join(within, "empty"), /is not empty/],
  ];
  for (const [to, cwd, message] of isFullSize ? refused : refused.filter((_, at) => at % 3 === 0)) {
    t.match(await intoIt(to, cwd), { code: 1, stdout: "", stderr: message }, `${to} in ${cwd}`);
    t.same(readdirSync(within).sort(), ["dangling", "empty", "link"], "nothing beside it");
    t.same(readdirSync(join(within, "empty")), [], "and nothing in it");
  }
  for (const [to, cwd] of [
    ["empty/.", within],
    ["new/./", within],
  ] as const) {
    t.match(await intoIt(to, cwd), { code: 0, stderr: "" }, to);
    t.ok(existsSync(join(within, to, "run.json")), to);
  }
  t.same(readdirSync(within).sort(), ["dangling", "empty", "link", "new"]);
});

t.test("--to is a mount point: refused before anything is written", { skip: mountsDisks() }, async (t) => {
  ended ??= endedStore();
  const { data, run } = await ended;
  const disk = mountDisk(t, "1m");
  const args = ["export", "--data", data, "--run", run.id, "--to"];
  t.match(await runCommand([...args, disk]), {
    code: 1,
    stdout: "",
    stderr: /^[^\n]* cannot be replaced \(rename [^\n]*\n$/,
  });
  t.notOk(existsSync(`${disk}.incomplete`));
  t.match(await runCommand([...args, join(disk, "run")]), { code: 0, stderr: "" });
});
