import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { RECORD_HEADER_BYTES } from "../../../storage/log/record-format.js";
import { segmentName } from "../../../storage/log/segment.js";
import { type KeptRun, REPORT, runWithCaptures, untilAllFormats } from "../../helpers/captures/kept-captures.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { nextId, PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { listOf } from "../../helpers/list-of.js";
import { type Ended, runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { receiverFor } from "../../helpers/webhooks/receiver.js";

/** A record as `inspect` prints it; of a run delta the kind of its first change. */
interface Inspected {
  sequence: number;
  type: string;
  segment: number;
  offset: number;
  length: number;
  content: { changes?: { kind: string; entry?: { eventType: string } }[]; delivery?: { runId: string } } | null;
}

function linesOf({ stdout }: Ended): Inspected[] {
  const lines = stdout.trim().split("\n");
  return lines.map((line) => JSON.parse(line) as Inspected);
}

async function recordsOf(data: string): Promise<Inspected[]> {
  return linesOf(await runCommand(["inspect", "--data", data]));
}

const isOf = (id: string) => (record: Inspected) => JSON.stringify(record.content).includes(id);
const kindOf = ({ content }: Inspected): string | undefined => content?.changes?.[0]?.kind;

function defined<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("no such record");
  return value;
}

/** Connects to the service; a run is started then, of which no more has come. */
async function startRun(service: ServiceProcess): Promise<{ id: string; producer: RawProducer }> {
  const id = nextId();
  const producer = await RawProducer.connect({ path: service.cellSocketPath }, "controller");
  await producer.accept(programPut());
  await producer.accept({ type: "run.create", id, program_id: PROGRAM_ID });
  await producer.accept({ type: "run.start", id });
  return { id, producer };
}

interface Exported extends Ended {
  to: string;
  names: string[];
  // biome-ignore lint/suspicious/noExplicitAny: answers of the interface, which other tests hold against it
  json(name: string): any;
}

/** Exports the run, with one byte of that record's body flipped meanwhile. */
async function exportWithout(data: string, runId: string, record: Inspected | null): Promise<Exported> {
  const to = join(data, "out");
  rmSync(to, { recursive: true, force: true });
  const path = join(data, "meta", segmentName(record?.segment ?? 1));
  const intact = readFileSync(path);
  const bytes = Buffer.from(intact);
  if (record !== null) bytes[record.offset + RECORD_HEADER_BYTES + 20]! ^= 1;
  writeFileSync(path, bytes);
  const ended = await runCommand(["export", "--data", data, "--run", runId, "--to", to]);
  writeFileSync(path, intact);
  return {
    ...ended,
    to,
    names: existsSync(to) ? readdirSync(to).sort() : [],
    json: (name) => JSON.parse(readFileSync(join(to, name), "utf8")),
  };
}

const WHOLE = ["defects.json", "files", "files.json", "quality-report.json", "run.json"];
const LOSSY = [...WHOLE, "incomplete.json"].sort();

function isSilent(t: Test, exported: Exported, what: string): void {
  t.match(exported, { code: 0, stderr: "" }, what);
  t.same(exported.names, WHOLE, what);
}

/** The export wrote what there is, exited 1, and said in one line and in a file which sequence number is lost. */
function tellsLoss(t: Test, exported: Exported, lost: Inspected, says: RegExp): void {
  t.equal(exported.code, 1, exported.stdout);
  t.match(exported.stderr, /^inspection-service: run \S+ may be incomplete: .*; see \S+incomplete\.json\n$/);
  t.match(exported.stderr, says);
  t.match(exported.stderr, new RegExp(`offset ${lost.offset}: .*, lost: ${lost.sequence} to ${lost.sequence}\\b`));
  t.same(exported.names, LOSSY);
  const told = exported.json("incomplete.json");
  t.ok(exported.stderr.includes(told.message), "the same in the file");
  t.match(
    told.lost,
    listOf({ code: "record_damaged", file: `meta/${segmentName(lost.segment)}`, offset: lost.offset, detail: String }),
  );
  t.match(told.lost, listOf({ first_sequence: lost.sequence, last_sequence: lost.sequence }));
  t.equal(told.lost.length, 1);
}

t.test("an export says which records of the run are damaged, and writes the rest of the run", async (t) => {
  const { data, ended, running } = await twoRuns(t);
  const records = await recordsOf(data);
  const ofEnded = records.filter(isOf(ended.id));
  const ofRunning = records.filter(isOf(running.id));
  const deltaOf = (kind: string) => defined(ofRunning.find((record) => kindOf(record) === kind));
  const end = defined(ofEnded.at(-1));
  t.equal(end.type, "runEnded");

  t.test("its end", async (t) => {
    const exported = await exportWithout(data, ended.id, end);
    tellsLoss(t, exported, end, /its status \(finalizing\) may be out of date/);
    t.match(exported.stdout, /\(finalizing\): 7 files/);
    t.match(exported.json("run.json"), { status: "finalizing", completed_at: null });
    t.same(readFileSync(join(exported.to, "files", "report.pdf")), REPORT);
  });
  t.test("an event of a running run", async (t) => {
    const two = defined(ofRunning.find(({ content }) => content?.changes?.[0]?.entry?.eventType === "two"));
    const exported = await exportWithout(data, running.id, two);
    tellsLoss(t, exported, two, /its status \(running\) may be out of date/);
    const types = exported.json("run.json").event_log.map((entry: { event_type: string }) => entry.event_type);
    t.same(types, ["one", "three"]);
  });
  t.test("what lies before its first record, or before the record that has all of it, is no loss", async (t) => {
    const delta = defined(ofEnded.find((record) => kindOf(record) === "event_added"));
    isSilent(t, await exportWithout(data, running.id, delta), "of an earlier run");
    isSilent(t, await exportWithout(data, ended.id, delta), "the end has it too");
    const created = defined(ofEnded.find(({ type }) => type === "runCreated"));
    isSilent(t, await exportWithout(data, ended.id, created), "the end has the beginning too");
  });
  t.test("after the end of a run", async (t) => {
    const record = deltaOf("run_started");
    tellsLoss(t, await exportWithout(data, ended.id, record), record, /changes may be missing.* after its end/);
  });
  t.test("the beginning of a run that has not ended", async (t) => {
    const exported = await exportWithout(data, running.id, deltaOf("run_created"));
    t.match(exported, { code: 1, stdout: "", names: { length: 0 } });
    t.match(exported.stderr, /^inspection-service: the first record of run .* is lost.*\n$/);
    t.match(exported.stderr, /inspect --run prints the rest/);
  });
  t.test("the beginning of a frame: its other records are of no use, and said to be", async (t) => {
    const begun = deltaOf("frame_begun");
    const exported = await exportWithout(data, running.id, begun);
    tellsLoss(t, exported, begun, /running/);
    t.same(readdirSync(join(exported.to, "files")).sort(), ["marked.png", "report.pdf"]);
    const { unusable } = exported.json("incomplete.json");
    t.match(unusable[0], new RegExp(`^record \\d+ \\(frame_lines_stored\\): .* has no frame ${running.frameId}$`));
  });
  t.test("lines of a frame: what no longer fits them is left out", async (t) => {
    const lines = deltaOf("frame_lines_stored");
    const exported = await exportWithout(data, running.id, lines);
    tellsLoss(t, exported, lines, /; 2 of its files can no longer be made;/);
    t.match(exported.stdout, /: 5 files/);
    const names = readdirSync(join(exported.to, "files"));
    t.ok(names.includes(`frame-${running.frameId}.png`), "a picture is whole");
    t.notOk(names.some((name) => name.endsWith(".ply")));
    t.match(exported.json("incomplete.json").left_out, listOf(/raw\.ply: .* 0 lines, .* has 2$/, /ply: /));
  });
  t.test("a run of which nothing is left", async (t) => {
    const exported = await exportWithout(data, nextId(), end);
    t.match(exported, { code: 1, stdout: "", names: { length: 0 } });
    t.match(
      exported.stderr,
      /no record of run .* can be read, and the log has lost records: meta\/.*, lost: \d+ to \d+\n$/,
    );
  });
  t.test("a segment that the disk does not open: the rest comes out, it is named, exit 1", (t) =>
    withoutSegment(t, data, running.id, records),
  );
});

/** A store that nobody serves any more, with a run that has ended and one that goes on. */
async function twoRuns(t: Test): Promise<{ data: string; ended: KeptRun; running: KeptRun }> {
  const service = await ServiceProcess.startFor(t);
  const data = service.dataDirectory;
  const client = new ContractClient(t, service.port);
  const producer = await RawProducer.connect({ path: service.cellSocketPath }, "controller");
  const addEvent = (run: KeptRun, type: string) =>
    producer.accept({ type: "event.add", run_id: run.id, event_type: type, data: { padding: "x".repeat(50) } });
  const ended = await runWithCaptures(producer, 1);
  await addEvent(ended, "of the ended one");
  await untilAllFormats(client, ended);
  await producer.accept({ type: "run.finish", id: ended.id });
  await client.until("/runs/{run_id}", ({ status }) => status === "completed", { path: { run_id: ended.id } });
  const running = await runWithCaptures(producer, 2);
  for (const type of ["one", "two", "three"]) await addEvent(running, type);
  await untilAllFormats(client, running);
  t.match(await service.end(), { code: 0 });

  return { data, ended, running };
}

t.test("what a recovery copied on, or cut since nobody was told of it, is no loss", async (t) => {
  const dataDirectory = temporaryDirectory(t);
  const meta = join(dataDirectory, "meta");
  // The service ends before it writes the mark that would prove the last record, except on a very slow machine.
  let id: string;
  let before: Buffer;
  let newest: string;
  do {
    const service = await ServiceProcess.startFor(t, { dataDirectory });
    const started = await startRun(service);
    id = started.id;
    await started.producer.accept({ type: "event.add", run_id: id, event_type: "told", data: {} });
    await service.end("SIGKILL");
    newest = readdirSync(meta).sort().at(-1) as string;
    before = readFileSync(join(meta, newest));
    const next = await ServiceProcess.startFor(t, { dataDirectory });
    t.match(await next.end(), { code: 0 });
  } while (readdirSync(meta).sort().at(-1) === newest);
  // A crash within that recovery leaves this: torn bytes after all.
  writeFileSync(join(meta, newest), Buffer.concat([before, Buffer.alloc(100, 7)]));
  const { stdout } = await runCommand(["check", "--data", dataDirectory]);
  t.match(stdout, /^superseded: /m);
  const exported = await exportWithout(dataDirectory, id, null);
  isSilent(t, exported, "superseded");
  t.ok(exported.json("run.json").event_log.length > 0);
});

/** Exports and inspects a run that goes on, in a store with these records and a segment that cannot be read. */
async function withoutSegment(t: Test, data: string, id: string, records: readonly Inspected[]): Promise<void> {
  const inspect = (...args: string[]) => runCommand(["inspect", "--data", data, ...args]);
  const file = `meta/${segmentName(1_000)}`;
  // A link to itself: it can be listed, but neither opened nor looked at.
  symlinkSync(join(data, file), join(data, file));
  const exported = await exportWithout(data, id, null);
  t.match(exported, { code: 1, stdout: /\(running\)/, names: LOSSY }, file);
  t.match(exported.stderr, /^inspection-service: run \S+ may be incomplete: .*; see \S+incomplete\.json\n$/);
  t.match(exported.stderr, new RegExp(`the disk cannot read ${file}, offset 0`));
  t.match(exported.json("incomplete.json").unreadable, listOf({ file, offset: 0, length_bytes: 0, detail: /ELOOP/ }));
  t.match(exported.json("run.json"), { id, status: "running" });
  const ended = await inspect();
  t.match(ended, { code: 1, stderr: /^the disk cannot read all of the log: [^\n]*\n$/ });
  const lines = linesOf(ended);
  t.same(lines.slice(0, records.length), records, "the records are printed as before");
  t.match(lines.at(-1), { kind: "unreadable", path: join(data, file) });
  t.match(await inspect("--run", id), { code: 1 }, "there may be more of it");
  t.match(await inspect("--sequence", "2"), { code: 0 }, "it is what was asked for");
  const ofFirst = await inspect("--segment", "1");
  t.match(ofFirst, { code: 0, stderr: "" }, "another segment is none that was asked for");
  t.same(linesOf(ofFirst).slice(0, records.length), records);
  rmSync(join(data, file));
  isSilent(t, await exportWithout(data, id, null), "as it was");
}

t.test("deliveries and the names of their webhooks", async (t) => {
  const service = await ServiceProcess.startFor(t);
  const receiver = await receiverFor(t);
  const data = service.dataDirectory;
  const client = new ContractClient(t, service.port);
  await client.post("/webhooks", {
    body: { name: "mes", url: receiver.url, subscribed_events: ["ProgramStarted", "ProgramCancelled"] },
  });
  const producer = await RawProducer.connect({ path: service.cellSocketPath }, "controller");
  const id = nextId();
  const untilDelivered = (count: number) =>
    client.until(
      "/runs/{run_id}",
      (run) => run.webhook_deliveries?.filter(({ status }) => status === "delivered").length === count,
      { path: { run_id: id } },
    );
  await producer.accept(programPut());
  await producer.accept({ type: "run.create", id, program_id: PROGRAM_ID });
  await producer.accept({ type: "run.start", id });
  await untilDelivered(1);
  await producer.accept({ type: "event.add", run_id: id, event_type: "note", data: { padding: "x".repeat(50) } });
  await producer.accept({ type: "run.cancel", id });
  await untilDelivered(2);
  t.match(await service.end(), { code: 0 });
  const records = await recordsOf(data);
  const statuses = (exported: Exported) =>
    exported.json("run.json").webhook_deliveries.map(({ status }: { status: string }) => status);
  const started = defined(records.find(({ content }) => content?.delivery?.runId === id));
  const lossy = await exportWithout(data, id, started);
  tellsLoss(t, lossy, started, /the outcome of its webhook deliveries/);
  t.same(statuses(lossy), ["pending", "delivered"], "the first one's outcome is lost, before the end of the run");

  const event = defined(records.find((record) => kindOf(record) === "event_added"));
  const conservative = await exportWithout(data, id, event);
  tellsLoss(t, conservative, event, /the outcome of its webhook deliveries/);

  const hook = defined(records.find(({ type }) => type === "webhook"));
  const unnamed = await exportWithout(data, id, hook);
  t.match(unnamed, { code: 1, names: LOSSY });
  t.match(unnamed.stderr, /the name of webhook .* is lost/);
  const created = defined(records.find(({ type }) => type === "runCreated"));
  const whole = await exportWithout(data, id, created);
  isSilent(t, whole, "before all that the export is made of");
  t.same(statuses(whole), ["delivered", "delivered"]);
});
