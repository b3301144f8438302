import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import type { ComponentRow } from "../../../core/health.js";
import { verifyHint } from "../../../storage/log/hint-format.js";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { nextId, PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { checkDirectory } from "../../helpers/store/checked-directory.js";
import { isFullSize } from "../../helpers/test-size.js";

const SCRIPT = new URL("../../helpers/process/small-segments-service.js", import.meta.url).pathname;
const RUNS = 60;
const REPORT = { name: "report.pdf", content_type: "application/pdf" };

const store = temporaryDirectory(t);
const damaged = temporaryDirectory(t);
const [META, QUARANTINE] = ["meta", "quarantine"].map((name) => join(damaged, name)) as [string, string];

/** A store of some segments with their hint files, stopped. */
async function fill(): Promise<void> {
  const service = await ServiceProcess.startFor(t, { script: SCRIPT, dataDirectory: store });
  const producer = new ProducerClient({ address: { path: service.cellSocketPath }, producer: "cell" });
  await producer.deliver(programPut());
  for (let nth = 0; nth < RUNS; nth++) {
    const id = nextId();
    const metadata = { text: "x".repeat(4_000) };
    await producer.deliver({ type: "run.create", id, program_id: PROGRAM_ID, metadata });
    await producer.deliver({ type: "file.put", run_id: id, ...REPORT }, Buffer.from("%PDF"));
    if (nth % 2 === 0) await producer.deliver({ type: "run.cancel", id });
  }
  await producer.close();
  const { code, stderr } = await service.end();
  if (code !== 0) throw new Error(stderr);
}

const segments = (): string[] =>
  readdirSync(META)
    .filter((name) => name.endsWith(".seg"))
    .sort();
const lastSegment = (): string => join(META, segments().at(-1) as string);
const hintNames = (): string[] =>
  readdirSync(META)
    .filter((name) => name.endsWith(".hint"))
    .sort();

interface Served {
  log: { status: string; detail: string | null };
  status: string;
  total: number;
  warnings: string[];
}

/** What a start of the service says and serves, with one run more recorded if it is to be. */
async function serve(records = false): Promise<Served> {
  const service = await ServiceProcess.startFor(t, { dataDirectory: damaged });
  const client = new ContractClient(t, service.port);
  const health = await client.get("/health");
  if (records) {
    const producer = new ProducerClient({ address: { path: service.cellSocketPath }, producer: "other" });
    await producer.deliver(programPut());
    const id = nextId();
    await producer.deliver({ type: "run.create", id, program_id: PROGRAM_ID });
    await producer.close();
    // An acknowledged run is durable. The service shows it a moment later.
    await client.until("/runs/{run_id}", () => true, { path: { run_id: id } });
  }
  const { total } = await client.get("/runs", { query: { limit: 1 } });
  const { code, stderr } = await service.end();
  if (code !== 0) throw new Error(stderr);
  const lines = stderr.trim().split("\n");
  const warnings = lines.filter((line) => line.includes('"level":40'));
  const { log } = health.components as { log: Served["log"] };
  return { log, status: health.status, total, warnings };
}

/** What a recorder says of the store, as the service shows it in `/health`, with one run more recorded if it is to be. */
async function open(t: Test, records = false): Promise<{ log: ComponentRow; total: number }> {
  const recorder = await RecorderHarness.start(t, damaged);
  const log = recorder.row("log");
  if (records) {
    const producer = new ProducerClient({ address: recorder.address, producer: "other" });
    await producer.deliver(programPut());
    const id = nextId();
    await producer.deliver({ type: "run.create", id, program_id: PROGRAM_ID });
    await producer.close();
    await recorder.until(() => recorder.runs.has(id));
  }
  await recorder.stop();
  return { log, total: recorder.runs.size };
}

async function check() {
  const { ok, findings: all } = await checkDirectory(damaged);
  // A stop may come before the last hint file is written, and a hint file without its segment is unusable.
  const findings = all.filter(({ code }) => !/^hint_(missing|unusable)$/.test(code));
  return { ok, codes: findings.map((finding) => finding.code), findings };
}

const restored = (): void => {
  rmSync(damaged, { recursive: true });
  cpSync(store, damaged, { recursive: true, filter: (path) => !/(lock|cell\.sock)$/.test(path) });
};

t.before(fill);
t.beforeEach(restored);

const unlinkAll = (folder: string, names: readonly string[]): void => {
  for (const name of names) unlinkSync(join(folder, name));
};

const LOSSES: [string, () => void][] = [
  ["all segments deleted", () => unlinkAll(META, segments())],
  ["the second half of the segments deleted", () => unlinkAll(META, segments().slice(segments().length >> 1))],
  ["the last two segments deleted", () => unlinkAll(META, segments().slice(-2))],
];

t.test("the store before it loses anything", async (t) => {
  t.ok(segments().length >= 4, `${segments().length} segments`);
  t.match(await check(), { ok: true, codes: { length: 0 } });
});

/** Each costs two starts of the service, which says and serves what the recorder found. */
const CHOSEN = isFullSize ? LOSSES : LOSSES.filter((_, at) => at === 2);

for (const [what, damage] of CHOSEN) {
  t.test(`${what}: the loss is told, by every start, and no number is used again`, async (t) => {
    const hint = hintNames().at(-1) as string;
    const durable = verifyHint(readFileSync(join(META, hint)))?.lastSequence as number;
    damage();
    const found = await check();
    t.notOk(found.ok);
    const lost = found.findings.find(({ code }) => code === "log_lost");
    t.match(lost?.message, new RegExp(`meta/${hint} says that everything up to ${durable} was durable`));

    const first = await serve(true);
    t.match(first, { status: "degraded", log: { status: "degraded", detail: /^since 20.*at least \d+ records lost/ } });
    t.match(first.log.detail, `everything up to ${durable} was durable`);
    t.equal(first.warnings.filter((line) => line.includes('"code":"log_lost"')).length, 1);
    t.ok(first.total >= 1 && first.total <= RUNS, `${first.total} runs, the new one among them`);
    t.ok(Number(segments().at(-1)?.slice(0, 16)) > durable, "the log goes on after what was durable");

    t.match(await serve(), { status: "degraded", total: first.total, log: { detail: /the start found \d+ damaged/ } });
    const after = await check();
    t.notOk(after.ok);
    t.ok(after.codes.includes("sequences_missing"));
  });
}

const WITNESSES: [string, () => void][] = [
  ["captures", () => {}],
  [
    "quarantine",
    () => {
      rmSync(join(damaged, "captures"), { recursive: true });
      writeFileSync(join(QUARANTINE, "0000000000000001.seg-64-3.bin"), "odd");
    },
  ],
];

for (const [what, damage] of isFullSize ? WITNESSES : WITNESSES.slice(0, 1)) {
  t.test(`no segment beside ${what}: not taken for a new store`, async (t) => {
    rmSync(META, { recursive: true });
    mkdirSync(META);
    damage();
    const found = await check();
    t.notOk(found.ok);
    t.match(
      found.findings.find(({ code }) => code === "log_lost"),
      { message: /there is no segment, and .* says that there was a log, lost: 1 to an unknown number/ },
    );
    const first = await open(t, true);
    t.match(first, {
      total: 1,
      log: { status: "degraded", detail: /an unknown number of records/ },
    });
    t.match(await open(t), {
      total: 1,
      log: { detail: /from earlier starts (?:is|are) in quarantine/ },
    });
    t.notOk((await check()).ok);
    unlinkAll(QUARANTINE, readdirSync(QUARANTINE));
    t.match(await open(t), { log: { status: "healthy" }, total: 1 }, "acknowledged by taking it away");
    t.ok((await check()).ok);
  });
}

t.test("a newest segment that ends within its opening state is told by every start", async (t) => {
  truncateSync(lastSegment(), 200);
  t.match(await check(), { ok: false });
  const log = { status: "degraded", detail: /the start found 1 damaged place: an unknown number of records lost/ };
  t.match(await open(t), { log });
  const [kept] = readdirSync(QUARANTINE) as [string];
  const after = await check();
  t.notOk(after.ok);
  t.same(new Set(after.codes), new Set(["opening_state_damaged", "capture_unnamed", "quarantined"]));
  const later = await open(t);
  t.match(later, { log });
  t.match(later.log.detail, `1 piece of damage from earlier starts is in quarantine/ (${kept})`);
  unlinkSync(join(QUARANTINE, kept));
  t.match(await open(t), { log }, "the gap in the sequence numbers still tells it");
  t.match(await check(), { ok: false });
});
