import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { nextId, PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { listOf } from "../../helpers/list-of.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { isFullSize, longOnly } from "../../helpers/test-size.js";

const SCRIPT = new URL("../../helpers/snapshot/snapshot-service.js", import.meta.url).pathname;
const RUNS = 60;
const REPORT = { name: "report.pdf", content_type: "application/pdf" };

const store = temporaryDirectory(t);
const damaged = temporaryDirectory(t);
const [META, SNAPSHOT, QUARANTINE] = ["meta", "snapshot", "quarantine"].map((name) => join(damaged, name)) as [
  string,
  string,
  string,
];

/** A store of some segments and a snapshot of its last record but a mark, stopped. */
async function fill(): Promise<void> {
  const service = await ServiceProcess.start({ script: SCRIPT, dataDirectory: store });
  t.teardown(() => service.dispose());
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
const snapshotNames = (path: string): string[] => readdirSync(path).filter((name) => name.endsWith(".snap"));

interface Served {
  log: { status: string; detail: string | null };
  status: string;
  total: number;
  warnings: string[];
}

/** What a start of the service says and serves, with one run more recorded if it is to be. */
async function serve(records = false): Promise<Served> {
  const service = await ServiceProcess.start({ dataDirectory: damaged });
  t.teardown(() => service.dispose());
  const client = new ContractClient(t, service.port);
  const health = await client.get("/health");
  if (records) {
    const producer = new ProducerClient({ address: { path: service.cellSocketPath }, producer: "other" });
    await producer.deliver(programPut());
    const id = nextId();
    await producer.deliver({ type: "run.create", id, program_id: PROGRAM_ID });
    await producer.close();
    // Acknowledged is durable; that it is served follows within the moment.
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

async function check() {
  const { code, stdout } = await runCommand(["check", "--data", damaged, "--json"]);
  const all = (JSON.parse(stdout) as { findings: { code: string; message: string }[] }).findings;
  // A stop may come before the last one is written; without its segment one is none.
  const findings = all.filter(({ code }) => !/^hint_(missing|unusable)$/.test(code));
  return { code, codes: findings.map((finding) => finding.code), findings };
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
  ["the newest segment deleted", () => unlinkSync(lastSegment())],
  ["the newest segment truncated to nothing", () => truncateSync(lastSegment(), 0)],
  ["the newest segment truncated to 200 bytes", () => truncateSync(lastSegment(), 200)],
];

t.test("the store before it loses anything", async (t) => {
  t.ok(segments().length >= 4, `${segments().length} segments`);
  t.match(await check(), { code: 0, codes: { length: 0 } });
});

/** Each costs two starts and two checks. */
const CHOSEN = isFullSize ? LOSSES : LOSSES.filter((_, at) => at === 2);

for (const [what, damage] of CHOSEN) {
  t.test(`${what}: the loss is told, by every start, and no number is used again`, async (t) => {
    const [snapshot] = snapshotNames(SNAPSHOT) as [string];
    const durable = Number(snapshot.slice(0, 16));
    const bytes = readFileSync(join(SNAPSHOT, snapshot));
    damage();
    const found = await check();
    t.equal(found.code, 1);
    const lost = found.findings.find(({ code }) => code === "log_lost");
    t.match(lost?.message, new RegExp(`snapshot/${snapshot} says that everything up to ${durable} was durable`));

    const first = await serve(true);
    t.match(first, { status: "degraded", log: { status: "degraded", detail: /^since 20.*at least \d+ records lost/ } });
    t.match(first.log.detail, `everything up to ${durable} was durable`);
    t.equal(first.warnings.filter((line) => line.includes('"code":"log_lost"')).length, 1);
    t.ok(first.total >= 1 && first.total <= RUNS, `${first.total} runs, the new one among them`);
    t.same(snapshotNames(SNAPSHOT), []);
    t.same(readFileSync(join(QUARANTINE, snapshot)), bytes, "kept as it was");
    t.ok(Number(segments().at(-1)?.slice(0, 16)) > durable, "the log goes on behind what was durable");

    const second = await serve();
    t.match(second, {
      status: "degraded",
      total: first.total,
      log: { detail: /from earlier starts (?:is|are) in quarantine/ },
    });
    const after = await check();
    t.equal(after.code, 1);
    t.ok(after.codes.includes("quarantined"));
  });
}

const WITNESSES: [string, () => void][] = [
  ["captures", () => {}],
  [
    "a damaged snapshot",
    () => {
      rmSync(join(damaged, "captures"), { recursive: true });
      writeFileSync(join(SNAPSHOT, "0000000000000100.snap"), "no snapshot");
    },
  ],
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
    for (const folder of [META, SNAPSHOT]) {
      rmSync(folder, { recursive: true });
      mkdirSync(folder);
    }
    damage();
    const found = await check();
    t.equal(found.code, 1);
    t.match(
      found.findings.find(({ code }) => code === "log_lost"),
      { message: /there is no segment, and .* says that there was a log, lost: 1 to an unknown number/ },
    );
    const first = await serve(true);
    t.match(first, {
      status: "degraded",
      total: 1,
      log: { status: "degraded", detail: /an unknown number of records/ },
    });
    t.match(await serve(), {
      status: "degraded",
      total: 1,
      log: { detail: /from earlier starts (?:is|are) in quarantine/ },
    });
    t.equal((await check()).code, 1);
    unlinkAll(QUARANTINE, readdirSync(QUARANTINE));
    t.match(await serve(), { log: { status: "healthy" }, total: 1 }, "acknowledged by taking it away");
    t.equal((await check()).code, 0);
  });
}

t.test("a damaged snapshot costs no answer, and is told until the operator takes it away", longOnly, async (t) => {
  const intact = await serve();
  t.match(intact, { status: "healthy", warnings: { length: 0 } });
  restored();
  const [name] = snapshotNames(SNAPSHOT) as [string];
  const bytes = readFileSync(join(SNAPSHOT, name));
  bytes[bytes.length >> 1]! ^= 1;
  writeFileSync(join(SNAPSHOT, name), bytes);
  t.match(await check(), { code: 1, codes: listOf("snapshot_damaged") });
  const first = await serve();
  t.match(first, { status: "degraded", total: intact.total, log: { status: "degraded" } });
  t.match(
    first.log.detail,
    new RegExp(`^since 20.*snapshot ${name} is damaged .*no answer is wrong .*remove the file$`),
  );
  t.match(
    first.warnings,
    listOf(/it is damaged, and everything is read from the log: a snapshot is kept in quarantine/),
  );
  t.same(snapshotNames(SNAPSHOT), []);
  t.same(readFileSync(join(QUARANTINE, name)), bytes, "kept as it was");
  t.match(await serve(), { log: { status: "degraded", detail: `1 piece of damage from earlier starts` } });
  t.match(await check(), { code: 1, codes: listOf("quarantined") });
  unlinkSync(join(QUARANTINE, name));
  t.match(await serve(), { status: "healthy", total: intact.total, warnings: { length: 0 } });
  t.match(await check(), { code: 0, codes: { length: 0 } });
});

for (const size of isFullSize ? [0, 40] : [40]) {
  t.test(
    `the only segment of a store without a snapshot cut to ${size} bytes: not taken for a new store`,
    async (t) => {
      rmSync(SNAPSHOT, { recursive: true });
      const [only, ...others] = segments() as [string];
      unlinkAll(META, others);
      t.equal(only, "0000000000000001.seg");
      truncateSync(join(META, only), size);
      const found = await check();
      t.equal(found.code, 1);
      t.match(
        found.findings.find(({ code }) => code === "segment_unreadable"),
        { message: /the segment's header, lost: 1 to an unknown number/ },
      );
      const detail = /^since 20.*opening found 1 damaged places: an unknown number of records lost/;
      const first = await serve(true);
      t.match(first, { status: "degraded", total: 1, log: { status: "degraded", detail } });
      t.equal(readdirSync(QUARANTINE).length, size > 0 ? 1 : 0, "what there is of it");
      t.ok(Number(segments().at(-1)?.slice(0, 16)) > 1_000_000, "the log goes on behind all that may have been there");
      t.match(await serve(), { status: "degraded", total: 1, log: { status: "degraded", detail } }, "by every start");
      t.equal((await check()).code, 1);
    },
  );
}

t.test(
  "a newest segment that ends within its opening state is told by every start, without a snapshot too",
  async (t) => {
    rmSync(SNAPSHOT, { recursive: true });
    truncateSync(lastSegment(), 200);
    t.match(await check(), { code: 1 });
    const log = { status: "degraded", detail: /opening found 1 damaged places: an unknown number of records lost/ };
    t.match(await serve(), { status: "degraded", log });
    const [kept] = readdirSync(QUARANTINE) as [string];
    const after = await check();
    t.equal(after.code, 1);
    t.same(new Set(after.codes), new Set(["opening_state_damaged", "capture_unnamed", "quarantined"]));
    const later = await serve();
    t.match(later, { status: "degraded", log });
    t.match(later.log.detail, `1 piece of damage from earlier starts is in quarantine/ (${kept})`);
    unlinkSync(join(QUARANTINE, kept));
    t.match(await serve(), { log }, "the hole in the numbers tells it still");
    t.match(await check(), { code: 1 });
  },
);
