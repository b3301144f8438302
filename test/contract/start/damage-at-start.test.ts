import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import t, { type Test } from "tap";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { listOf } from "../../helpers/list-of.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { checkDirectory } from "../../helpers/store/checked-directory.js";
import { recordOffsets } from "../../helpers/store/segment-bytes.js";
import { isFullSize } from "../../helpers/test-size.js";

const RUNS = 6;
const DAMAGED = 3;

type DamagedStore = Awaited<ReturnType<typeof damagedStore>>;

const lines = (text: string) =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, never>);

t.test("damage found at start is in quarantine, in health and in check, and is served by nothing", async (t) => {
  const data = temporaryDirectory(t);
  const store = await damagedStore(t, data);
  await isServedByNothing(t, store);
  const kept = readdirSync(join(data, "quarantine")).sort();
  t.equal(kept.length, 1);
  for (const name of kept) {
    const [offset = 0, lengthBytes = 0] = name.split(/[-.]/).slice(2, 4).map(Number);
    const part = store.bytes.subarray(offset, offset + lengthBytes);
    t.ok(readFileSync(join(data, "quarantine", name)).equals(part), "the bytes as they were found");
  }
  await isFound(t, store);
  await isInspected(t, store);
  await isToldUntilMended(t, store);
  await isHeaderCopyTold(t, store);
});

/**
 * A store with one damaged run: the records of its creation and of its end are damaged, and count as one place.
 * @returns where, with the path of the one segment, its bytes as they are now, and the offsets of the damaged records
 */
async function damagedStore(t: Test, data: string) {
  const first = await RecorderHarness.start(t, data);
  const producer = new ProducerClient({ address: first.address, producer: "cell" });
  await producer.deliver(programPut());
  const ids: string[] = [];
  for (let i = 0; i < RUNS; i++) {
    const id = producer.nextRunId();
    ids.push(id);
    const metadata = { mark: `M${i}M` };
    await producer.deliver({ type: "run.create", id, program_id: PROGRAM_ID, serial_number: `SN${i}`, metadata });
    await producer.deliver({ type: "run.cancel", id });
  }
  await producer.close();
  await first.stop();
  const intact = { ok: true, findings: { length: 0 }, summary: { segments: 1, quarantineFiles: 0 } };
  t.match(await checkDirectory(data), intact);

  const [segment] = readdirSync(join(data, "meta")) as [string];
  const path = join(data, "meta", segment);
  const bytes = readFileSync(path);
  const offsets = recordOffsets(bytes).filter((offset, nth, all) =>
    bytes.subarray(offset, all[nth + 1]).includes(`M${DAMAGED}M`),
  );
  t.equal(offsets.length, 2);
  for (const offset of offsets) bytes[bytes.indexOf(`M${DAMAGED}M`, offset)] = 0x58;
  writeFileSync(path, bytes);
  return { data, ids, path, offsets, bytes };
}

async function isServedByNothing(t: Test, { data, ids }: DamagedStore): Promise<void> {
  const service = await ServiceProcess.startFor(t, { dataDirectory: data });
  const client = new ContractClient(t, service.port);
  t.match(await client.get("/health"), {
    status: "degraded",
    components: {
      log: { status: "degraded", detail: /the start found 1 damaged place: 2 records lost, \d+ bytes in quarantine/ },
    },
  });
  const list = await client.get("/runs");
  t.same(
    list.runs.map(({ id }) => id).reverse(),
    ids.filter((_, at) => at !== DAMAGED),
    "the others are all there",
  );
  t.notMatch(JSON.stringify(list), `X${DAMAGED}M`);
  await client.refusal("get", "/runs/{run_id}", 404, "run_not_found", { path: { run_id: ids[DAMAGED] as string } });
  await client.get("/runs/{run_id}", { path: { run_id: ids[0] as string } });
  t.match(await service.end(), { code: 0 });
  const warned = lines(service.stderr).filter(({ msg }) => msg === "found while opening the log");
  t.match(warned, listOf({ level: 40, code: "record_damaged" }));
}

/** `check` finds the damage. */
async function isFound(t: Test, { data, offsets }: DamagedStore): Promise<void> {
  const check = await runCommand(["check", "--data", data]);
  t.equal(check.code, 1);
  t.equal(
    check.stdout.match(/^record_damaged: meta\/\d+\.seg, offset \d+, \d+ bytes: .*, lost: \d+ to \d+$/gm)?.length,
    1,
  );
  t.equal(check.stdout.match(/^quarantined: quarantine\//gm)?.length, 1);
  t.match(check.stdout, /; quarantine: 1 file, \d+ bytes; 2 findings, 1 of damage\nDAMAGED\n$/);
  t.equal(check.stderr, "", "no progress of a check that is soon done");
  const asJson = JSON.parse((await runCommand(["check", "--data", data, "--json"])).stdout) as {
    findings: { code: string; offset: number }[];
  };
  const places = asJson.findings.filter(({ code }) => code === "record_damaged").map(({ offset }) => offset);
  t.same(places, offsets.slice(0, 1));
}

/** `inspect` shows the damage. */
async function isInspected(t: Test, { data, ids, path, offsets }: DamagedStore): Promise<void> {
  const inspect = async (...args: string[]) => {
    const ended = await runCommand(["inspect", "--data", data, ...args]);
    return { ...ended, items: ended.stdout === "" ? [] : lines(ended.stdout) };
  };
  const [base, place] = [String(Number(basename(path).slice(0, 16))), String(offsets[0])];
  const damaged = await inspect("--segment", base, "--offset", place);
  t.match(damaged, {
    code: 1,
    stderr: /the damage that was found is listed above/,
    items: listOf({ kind: "finding", finding: { code: "record_damaged" } }),
  });
  const lost = (damaged.items[0] as unknown as { finding: { firstLost: number } }).finding.firstLost;
  t.match(await inspect("--sequence", String(lost)), { code: 1, items: listOf({ finding: { firstLost: lost } }) });
  const before = await inspect("--sequence", String(lost - 1));
  t.match(before, {
    code: 0,
    items: listOf({ sequence: lost - 1, content: { changes: listOf({ kind: "run_ended" }) } }),
  });
  const { offset, length } = before.items[0] as unknown as { offset: number; length: number };
  const same = await inspect("--segment", base, "--offset", String(offset + length - 1));
  t.match(same, { code: 0, items: before.items });
  const ofRun = await inspect("--run", ids[0] as string);
  t.match(
    ofRun.items.filter((item) => !("kind" in item)),
    listOf({ type: "runCreated" }, { type: "runEnded" }),
  );
  t.match(await inspect("--run", "019bb000-0000-7000-8000-0000000000ff"), { code: 1, stderr: /no such record/ });
  if (isFullSize) {
    t.match(await inspect("--sequence", "999999"), { code: 1, stdout: "", stderr: "no such record\n" });
    t.match(await inspect("--offset", "64"), { code: 1, stderr: /--offset needs --segment/ });
  }
  const opening = await inspect("--segment", base, "--offset", "64");
  t.match(opening.items, listOf({ type: "opening_state", content: { version: 1, producers: { length: 0 } } }));
}

/** What health says of the log at the next start. */
async function logRow(t: Test, data: string) {
  const again = await RecorderHarness.start(t, data);
  const row = again.row("log");
  await again.stop();
  return row;
}

/** Damage in the log is told as long as it is there, even if its quarantine file is gone. An intact copy ends it. */
async function isToldUntilMended(t: Test, { data, path, offsets }: DamagedStore): Promise<void> {
  const look = () => logRow(t, data);
  const [copy] = readdirSync(join(data, "quarantine")) as [string];
  rmSync(join(data, "quarantine", copy));
  t.match(await look(), { status: "degraded", detail: /the start found 1 damaged place/ });
  t.same(readdirSync(join(data, "quarantine")), [copy], "copied again");
  const rotten = readFileSync(path);
  const mended = Buffer.from(rotten);
  for (const offset of offsets) mended[rotten.indexOf(`X${DAMAGED}M`, offset)] = 0x4d;
  writeFileSync(path, mended);
  t.match(await look(), { status: "degraded", detail: /1 piece of damage from earlier starts is .*remove the files/ });
  rmSync(join(data, "quarantine", copy));
  t.match(await look(), { status: "healthy" });
  t.match(await checkDirectory(data), { ok: true });
}

/** Damage in one copy of a segment's header loses nothing. Nothing is copied, and it is told until it is mended. */
async function isHeaderCopyTold(t: Test, { data, path }: DamagedStore): Promise<void> {
  const look = () => logRow(t, data);
  const whole = readFileSync(path);
  writeFileSync(path, Buffer.from(whole).fill(0xff, 0, 4));
  for (const round of isFullSize ? ["first", "second"] : ["first"]) {
    t.match(await look(), { status: "degraded", detail: /the start found 1 damaged place: 0 records lost/ }, round);
  }
  t.match(await checkDirectory(data), { ok: false, findings: listOf({ code: "header_copy_damaged" }) });
  t.same(readdirSync(join(data, "quarantine")), []);
  const now = readFileSync(path);
  now.set(whole.subarray(0, 4));
  writeFileSync(path, now);
  t.match(await checkDirectory(data), { ok: true });
}
